/* Save the current exception while our code runs, so that our code neither sees nor loses the
 * exception. */
#pragma once

#include <Python.h>

/* All owned; NULL where none was set. */
typedef struct {
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
} qp_exception;

/* Takes the exception that is set, and clears it. */
static inline qp_exception qp_exception_take(void)
{
    qp_exception taken;
    PyErr_Fetch(&taken.type, &taken.value, &taken.traceback);
    return taken;
}

/* Sets the exception again, and releases the references. Drops an exception that was set later. */
static inline void qp_exception_put_back(const qp_exception *taken)
{
    PyErr_Restore(taken->type, taken->value, taken->traceback);
}

/* Releases the references. An exception that was set later stays. */
static inline void qp_exception_drop(qp_exception *taken)
{
    Py_CLEAR(taken->type);
    Py_CLEAR(taken->value);
    Py_CLEAR(taken->traceback);
}
