#include "wrappers/watched_call.h"

#include <stdbool.h>

#include "runtime/exception.h"
#include "wrappers/wrapper.h"

/* The arguments of a call, borrowed. */
typedef struct {
    PyObject *const *args;
    Py_ssize_t count; /* number of positional arguments */
    PyObject *names;  /* the names of the keyword arguments; may be NULL */
} arguments;

static PyObject *keyword_value(const arguments *of, const char *name)
{
    for (Py_ssize_t i = 0; of->names && i < PyTuple_GET_SIZE(of->names); i++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(of->names, i), name) == 0) {
            return of->args[of->count + i];
        }
    }
    return Py_None;
}

/* Calls `watch`. `result` is the result of the original; NULL before the call. Returns a new
 * reference to the watcher's result; NULL with its exception. */
static PyObject *call_watch(PyObject *watch, bool is_over, const arguments *of, PyObject *result)
{
    PyObject *given[] = {
        is_over ? Py_True : Py_False,          of->count > 0 ? of->args[0] : Py_None,
        of->count > 1 ? of->args[1] : Py_None, keyword_value(of, "query"),
        keyword_value(of, "connection"),       result ? result : Py_None};
    PyThreadState *thread = PyThreadState_Get();
    PyThreadState_EnterTracing(thread);
    PyObject *done = PyObject_Vectorcall(watch, given, sizeof given / sizeof *given, NULL);
    PyThreadState_LeaveTracing(thread);
    return done;
}

static PyObject *run_watched(PyObject *callable, PyObject *const *args, size_t flagged,
                             PyObject *names)
{
    const qp_wrapper *self = (qp_wrapper *)callable;
    const arguments given = {args, PyVectorcall_NARGS(flagged), names};
    Py_INCREF(callable); /* the call may end the recording */
    PyObject *watch = self->extra;
    PyObject *result = NULL;
    PyObject *token = call_watch(watch, false, &given, NULL);
    if (token) {
        result = qp_wrapper_call(self, args, flagged, names);
        qp_exception exception = qp_exception_take();
        Py_DECREF(token);
        PyObject *done = call_watch(watch, true, &given, result);
        Py_XDECREF(done);
        if (done) {
            qp_exception_put_back(&exception);
        } else {
            qp_exception_drop(&exception);
            Py_CLEAR(result);
        }
    }
    Py_DECREF(callable);
    return result;
}

PyObject *qp_watched_call_wrapper(PyTypeObject *wrapper_type, PyObject *original, PyObject *watch)
{
    return qp_wrapper_new(wrapper_type, run_watched, original, watch);
}
