/* Save the current exception while our code runs, so that our code neither sees nor loses the
 * exception. A signal handler of the program may run, and raise, in our code. The exception of the
 * handler is forwarded: the interpreter raises it in the program, soon after our code has
 * returned. */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* A saved exception: all fields are owned, and NULL if no exception was set. */
typedef struct {
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
} qp_exception;

/* Returns the current exception (owned by the caller), and clears it. */
static inline qp_exception qp_exception_take(void)
{
    qp_exception taken;
    PyErr_Fetch(&taken.type, &taken.value, &taken.traceback);
    return taken;
}

/* Sets the function that returns True for an exception that came through a signal handler (keeps a
 * new reference). */
void qp_exception_set_signal_check(PyObject *function);

/* Forwards the current exception if it came through a signal handler; otherwise leaves it set.
 * Returns whether the exception was forwarded. */
bool qp_exception_forward(void);

/* Forwards the current exception if it came through a signal handler; otherwise drops it. */
void qp_exception_forward_or_drop(void);

static inline void qp_exception_clear(void)
{
    if (PyErr_Occurred()) {
        qp_exception_forward_or_drop();
    }
}

/* Returns a callable (a new reference) for os.register_at_fork() that calls the function; NULL with
 * an exception. */
PyObject *qp_make_fork_hook(PyObject *function);

/* Sets the exception again, and releases the references. Forwards or drops an exception that was
 * set later. */
static inline void qp_exception_put_back(const qp_exception *taken)
{
    qp_exception_clear();
    PyErr_Restore(taken->type, taken->value, taken->traceback);
}

/* Releases the references. An exception that was set later stays. */
static inline void qp_exception_drop(qp_exception *taken)
{
    Py_CLEAR(taken->type);
    Py_CLEAR(taken->value);
    Py_CLEAR(taken->traceback);
}
