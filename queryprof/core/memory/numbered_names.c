#include "memory/numbered_names.h"

#include "memory/columns.h"

#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/exception.h"

/* Adds a row with a name. Returns the row's number, or QP_NAME_OTHER if the table is full. */
static uint32_t add_row(qp_table table, qp_text name)
{
    uint32_t number = name == QP_TEXT_FULL ? UINT32_MAX : qp_rows_add(table, 1);
    if (number == UINT32_MAX) {
        return QP_NAME_OTHER;
    }
    memcpy(qp_table_start[table] + (size_t)number * qp_tables[table].row_bytes, &name, sizeof name);
    return number;
}

int qp_names_start(qp_names *names, qp_table table, const char *zeroth)
{
    names->table = table;
    names->numbers = PyDict_New();
    bool reserved = add_row(table, qp_text_find_or_add(zeroth, strlen(zeroth))) == 0 &&
                    add_row(table, qp_text_find_or_add("(other)", 7)) == QP_NAME_OTHER;
    return names->numbers && reserved ? 0 : -1;
}

void qp_names_stop(qp_names *names)
{
    Py_CLEAR(names->numbers);
}

uint16_t qp_name_number(qp_names *names, PyObject *name)
{
    if (!names->numbers) {
        return 0; /* the recording has ended */
    }
    PyObject *known = PyDict_GetItemWithError(names->numbers, name);
    if (known || PyErr_Occurred()) {
        return known ? (uint16_t)PyLong_AsLong(known) : 0;
    }
    uint32_t number = add_row(names->table, qp_text_from_str(name));
    if (number == QP_NAME_OTHER) { /* do not store further names, because their number may be
                                    * unlimited */
        return QP_NAME_OTHER;
    }
    PyObject *value = PyLong_FromUnsignedLong(number);
    bool added = value && PyDict_SetItem(names->numbers, name, value) == 0;
    Py_XDECREF(value);
    return added ? (uint16_t)number : 0;
}

bool qp_name_has_number(const qp_names *names, PyObject *name)
{
    bool has = names->numbers && PyDict_Contains(names->numbers, name) == 1;
    qp_exception_clear();
    return has;
}

bool qp_name_is_known(const qp_names *names, uint16_t number)
{
    return names->numbers && number < qp_row_count(names->table);
}
