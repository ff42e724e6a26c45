#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall */
#endif
#include "runtime/exception.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 8 }; /* exceptions of handlers that wait for the end of a hook */

static PyObject *signal_check; /* owned; NULL before the first recording */

void qp_exception_set_signal_check(PyObject *function)
{
    PyObject *before = signal_check;
    Py_INCREF(function);
    signal_check = function;
    Py_XDECREF(before);
}

/* Python runs signal handlers in the main thread only. */
static bool is_main_thread(void)
{
    return syscall(SYS_gettid) == (long)getpid();
}

/* Raises an exception in the program. The interpreter calls this function between two of the
 * program's instructions. Takes over the reference to the exception. */
static int raise_in_program(void *exception)
{
    PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)exception), exception);
    Py_DECREF((PyObject *)exception);
    return -1;
}

/* Returns whether an exception came through a signal handler, so that it is not an error of our
 * code. */
static bool came_by_signal(PyObject *exception)
{
    if (!PyErr_GivenExceptionMatches(exception, PyExc_Exception)) {
        return true; /* KeyboardInterrupt, or a handler's SystemExit */
    }
    PyObject *found = signal_check ? PyObject_CallOneArg(signal_check, exception) : NULL;
    PyErr_Clear();
    Py_XDECREF(found);
    return found == Py_True;
}

/* Returns the current exception (owned by the caller), and clears it. */
static PyObject *take_exception(void)
{
    PyObject *type, *exception, *traceback;
    PyErr_Fetch(&type, &exception, &traceback);
    PyErr_NormalizeException(&type, &exception, &traceback);
    if (traceback) {
        PyException_SetTraceback(exception, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return exception;
}

bool qp_exception_forward(void)
{
    PyObject *type, *exception, *traceback;
    PyErr_Fetch(&type, &exception, &traceback);
    bool is_own = !traceback && (!type || PyErr_GivenExceptionMatches(type, PyExc_Exception));
    PyErr_Restore(type, exception, traceback);
    if (is_own || !is_main_thread()) {
        return false;
    }
    exception = take_exception();
    if (came_by_signal(exception) && Py_AddPendingCall(raise_in_program, exception) == 0) {
        return true;
    }
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return false;
}

void qp_exception_forward_or_drop(void)
{
    if (!qp_exception_forward()) {
        PyErr_Clear();
    }
}

/* Calls a function for os.register_at_fork(). Python prints the exceptions of such functions and
 * continues. But exceptions of the program's signal handlers must reach the program. */
static PyObject *call_hook(PyObject *function, PyObject *Py_UNUSED(none))
{
    sigset_t all, before;
    sigfillset(&all);
    bool is_held = pthread_sigmask(SIG_BLOCK, &all, &before) == 0;
    PyObject *exceptions[MOST] = {NULL};                          /* owned */
    for (int i = 0; i < MOST && Py_MakePendingCalls() < 0; i++) { /* so that no handler's exception
                                                                   * is raised in the function */
        exceptions[i] = take_exception();
    }
    PyObject *done = PyObject_CallNoArgs(function);
    if (!done && !qp_exception_forward()) {
        PyErr_WriteUnraisable(function);
    }
    Py_XDECREF(done);
    for (int i = 0; i < MOST; i++) {
        if (exceptions[i] && Py_AddPendingCall(raise_in_program, exceptions[i]) < 0) {
            Py_DECREF(exceptions[i]);
        }
    }
    if (is_held) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    Py_RETURN_NONE;
}

PyObject *qp_make_fork_hook(PyObject *function)
{
    static PyMethodDef definition = {"fork_hook", call_hook, METH_NOARGS, NULL};
    return PyCFunction_New(&definition, function);
}
