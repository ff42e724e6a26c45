#include "runtime/dictionary.h"

PyObject *qp_dict_find(PyObject *dict, const char *name)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!dict || !PyDict_CheckExact(dict)) {
        return NULL;
    }
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (PyUnicode_CheckExact(key) && !PyUnicode_CompareWithASCIIString(key, name)) {
            return value;
        }
    }
    return NULL;
}
