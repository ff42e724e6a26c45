#include "runtime/dictionary.h"

PyObject *qp_dict_find(PyObject *dict, const char *name)
{
    /* A namespace of generated code can have 100,000 names, and is searched for each function. */
    enum { MOST_SEARCHED = 1000 };
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!dict || !PyDict_CheckExact(dict)) {
        return NULL;
    }
    for (int i = 0; i < MOST_SEARCHED && PyDict_Next(dict, &at, &key, &value); i++) {
        if (PyUnicode_CheckExact(key) && !PyUnicode_CompareWithASCIIString(key, name)) {
            return value;
        }
    }
    return NULL;
}
