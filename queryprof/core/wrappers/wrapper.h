/* A callable that replaces another one: it is called in the same way, and has the same attributes.
 */
#pragma once

#include <Python.h>

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject
        *wrapped; /* owned, as what follows; the last three may be NULL, and are for `vectorcall` */
    PyObject *extra;
    PyObject *referred;
    void *data;
} qp_wrapper;

/* Makes the heap type; a new reference, or NULL with an exception. */
PyTypeObject *qp_wrapper_type(PyObject *module);

/* A new wrapper of that type: calling it calls `call`, everything else is `wrapped`'s. A reference
 * is taken to `wrapped` and to `extra`, which may be NULL. NULL with an exception. */
PyObject *qp_wrapper_new(PyTypeObject *type, vectorcallfunc call, PyObject *wrapped,
                         PyObject *extra);

/* Adds `bytes` bytes of zeroed data to a new wrapper, and an object that they refer to (a reference
 * is taken; may be NULL). Valid as long as the wrapper. NULL with an exception. */
void *qp_wrapper_hold(PyObject *wrapper, size_t bytes, PyObject *referred);
