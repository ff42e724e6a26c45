#include "names.h"

int qp_names_start(qp_names *table, const char *zeroth)
{
    table->numbers = PyDict_New();
    table->names = Py_BuildValue("[s]", zeroth);
    return table->numbers && table->names ? 0 : -1;
}

void qp_names_stop(qp_names *table)
{
    Py_CLEAR(table->numbers);
    Py_CLEAR(table->names);
}

uint16_t qp_name_number(qp_names *table, PyObject *name)
{
    if (!table->numbers) {
        return 0; /* the recording has ended */
    }
    PyObject *known = PyDict_GetItemWithError(table->numbers, name);
    if (known || PyErr_Occurred()) {
        return known ? (uint16_t)PyLong_AsLong(known) : 0;
    }
    Py_ssize_t number = PyList_GET_SIZE(table->names);
    if (number >= QP_NAMES) {
        return QP_NAMES - 1;
    }
    PyObject *text = number == QP_NAMES - 1 ? PyUnicode_FromString("(other)") : Py_NewRef(name);
    PyObject *value = PyLong_FromSsize_t(number);
    bool added = text && value && PyDict_SetItem(table->numbers, text, value) == 0 &&
                 PyList_Append(table->names, text) == 0;
    Py_XDECREF(text);
    Py_XDECREF(value);
    return added ? (uint16_t)number : 0;
}

bool qp_name_is_known(const qp_names *table, uint16_t number)
{
    return table->names && number < PyList_GET_SIZE(table->names);
}

PyObject *qp_name_of(const qp_names *table, uint16_t number)
{
    PyObject *name = PyList_GetItem(table->names, number); /* IndexError beyond the end */
    return name ? Py_NewRef(name) : NULL;
}
