/* Save the current exception while our code runs, so that our code neither sees nor loses the
 * exception. A signal handler of the program may run, and raise, in our code. Its exception is
 * forwarded: the interpreter raises it in the program, soon after our code has returned. */
#pragma once

#include <Python.h>
#include <stdbool.h>

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

/* Sets the function that returns True for an exception which came through a signal handler. */
void qp_exception_recognize_by(PyObject *function);

/* Forwards the exception that is set, if it came through a signal handler; else leaves it set.
 * Returns whether it was forwarded. */
bool qp_exception_forward(void);

/* Forwards the exception that is set, or drops it. */
void qp_exception_clear(void);

/* A new reference: a callable for os.register_at_fork() that calls the function. */
PyObject *qp_fork_hook(PyObject *function);

/* Sets the exception again, and releases the references. Forwards or drops an exception that was
 * set later. */
static inline void qp_exception_put_back(const qp_exception *taken)
{
    if (PyErr_Occurred()) {
        qp_exception_clear();
    }
    PyErr_Restore(taken->type, taken->value, taken->traceback);
}

/* Releases the references. An exception that was set later stays. */
static inline void qp_exception_drop(qp_exception *taken)
{
    Py_CLEAR(taken->type);
    Py_CLEAR(taken->value);
    Py_CLEAR(taken->traceback);
}
