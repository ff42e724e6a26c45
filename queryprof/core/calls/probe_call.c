#include "calls/probe_call.h"

#include <stdbool.h>

#include "calls/coroutine_call.h"
#include "runtime/exception.h"
#include "wrappers/wrapper.h"

/* The statement and parameters of a call; both owned. */
typedef struct {
    PyObject *text, *parameters;
} measured;

/* Returns the argument (borrowed) with one of the keywords `of`, which end with a NULL; NULL if the
 * argument is missing. */
static PyObject *keyword_argument(const char *const *of, PyObject *names, PyObject *const *values)
{
    for (; names && *of; of++) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), *of) == 0) {
                return values[i];
            }
        }
    }
    return NULL;
}

/* Returns the statement and parameters (both owned by the caller) among the arguments from `first`.
 * The statement is the first argument, an argument with the driver's keyword, or an attribute of
 * the receiver. */
static measured find_statement_argument(const qp_probe *probe, PyObject *receiver,
                                        PyObject *const *args, Py_ssize_t first,
                                        Py_ssize_t positional, PyObject *names)
{
    static const char *const texts[] = {"query", "operation", "sql", "statement", "command", NULL};
    static const char *const values[] = {"params",    "parameters",        "args", "vars",
                                         "vars_list", "seq_of_parameters", NULL};
    measured found = {NULL, NULL};
    if (probe->source == QP_SOURCE_EXIT) { /* the exception's type */
        found.text = positional > first ? Py_NewRef(args[first]) : NULL;
    }
    if (probe->source != QP_SOURCE_TEXT) {
        return found; /* an argument of `connect` may be a password */
    }
    if (probe->text_of) {
        found.text = receiver ? PyObject_GetAttr(receiver, probe->text_of) : NULL;
        qp_exception_clear(); /* the statement stays unknown, and the call will raise the error */
    } else {
        PyObject *named = keyword_argument(texts, names, args + positional);
        PyObject *other = names ? args[positional] : NULL; /* a keyword that only this driver has */
        found.text = Py_XNewRef(positional > first ? args[first] : named ? named : other);
        first++;
    }
    if (probe->returns == QP_RETURNS_CURSOR) {
        PyObject *given =
            positional > first ? args[first] : keyword_argument(values, names, args + positional);
        /* Other keywords may also be values (oracledb): the parameters are then unknown. */
        found.parameters = Py_XNewRef(given || !names ? given : Py_Ellipsis);
    } else if (positional > first && probe->returns != QP_RETURNS_PORTAL) { /* each argument is a
                                                                             * parameter */
        found.parameters = PyTuple_New(positional - first);
        for (Py_ssize_t i = first; found.parameters && i < positional; i++) {
            PyTuple_SET_ITEM(found.parameters, i - first, Py_NewRef(args[i]));
        }
        qp_exception_clear();
    }
    return found;
}

/* Returns whether an argument is true: the second positional one, or the keyword `name`. A missing
 * argument counts as true, and so does an empty `name`. Returns -1 with an exception. */
static int is_argument_true(PyObject *name, PyObject *const *args, Py_ssize_t positional,
                            PyObject *names)
{
    if (PyUnicode_GET_LENGTH(name) == 0) {
        return 1;
    }
    if (positional > 1) {
        return PyObject_IsTrue(args[1]);
    }
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) {
            return PyObject_IsTrue(args[positional + i]);
        }
    }
    return 1;
}

/* Returns whether a call waits because its pool has no free connection. Runs no Python code, so
 * that signal handlers and trace functions see only the driver's calls. Returns -1 with an
 * exception, which a handler may still raise in a property. */
static int waits_for_connection(PyObject *only_if, PyObject *const *args, Py_ssize_t positional,
                                PyObject *names)
{
    int waits = is_argument_true(PyTuple_GET_ITEM(only_if, 0), args, positional, names);
    PyObject *at = waits > 0 ? Py_NewRef(args[0]) : NULL;
    for (Py_ssize_t i = 1; at && i < PyTuple_GET_SIZE(only_if); i++) {
        PyObject *next = PyObject_GetAttr(at, PyTuple_GET_ITEM(only_if, i));
        Py_SETREF(at, next);
    }
    if (at) {
        int is_filled = PyObject_IsTrue(at);
        waits = is_filled < 0 ? -1 : !is_filled;
        Py_DECREF(at);
    } else if (waits > 0) {
        waits = -1;
    }
    if (waits < 0 &&
        (PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_TypeError))) {
        qp_exception_clear(); /* another version of the library without these attributes */
        return 0;
    }
    return waits;
}

static PyObject *call_probe(PyObject *callable, PyObject *const *args, size_t flagged,
                            PyObject *names)
{
    const qp_wrapper *self = (qp_wrapper *)callable;
    const qp_probe *probe = self->data;
    Py_ssize_t positional = PyVectorcall_NARGS(flagged);
    Py_ssize_t first = probe->has_receiver;
    PyObject *receiver = first && positional ? args[0] : NULL;
    Py_INCREF(callable); /* the call may detach us */
    int waits = probe->only_if
                    ? receiver ? waits_for_connection(probe->only_if, args, positional, names) : 0
                    : 1;
    if (waits <= 0) {
        PyObject *unmeasured = waits < 0 ? NULL : qp_wrapper_call(self, args, flagged, names);
        Py_DECREF(callable);
        return unmeasured;
    }
    measured is = find_statement_argument(probe, receiver, args, first, positional, names);
    PyObject *result;
    if (probe->is_awaited) {
        PyObject *coroutine = qp_wrapper_call(self, args, flagged, names);
        result = coroutine
                     ? qp_measured_coroutine(self, coroutine, receiver, is.text, is.parameters)
                     : NULL;
    } else {
        qp_call *call = qp_call_begin(probe, receiver, is.text, is.parameters);
        result = qp_wrapper_call(self, args, flagged, names);
        if (call) {
            qp_call_end(call, result);
        }
    }
    Py_XDECREF(is.parameters);
    Py_XDECREF(is.text);
    Py_DECREF(callable);
    return result;
}

PyObject *qp_probe_wrapper_new(PyTypeObject *type, const qp_probe *probe, PyObject *wrapped,
                               PyTypeObject *coroutine_proxy_type)
{
    PyObject *self = qp_wrapper_new(type, call_probe, wrapped, (PyObject *)coroutine_proxy_type);
    /* A probe has at most one of these three objects. */
    PyObject *referred = probe->text_of   ? probe->text_of
                         : probe->only_if ? probe->only_if
                                          : (PyObject *)probe->cursor_type;
    qp_probe *held = self ? qp_wrapper_add_data(self, sizeof *held, referred) : NULL;
    if (!held) {
        Py_XDECREF(self);
        return NULL;
    }
    *held = *probe;
    held->function = wrapped; /* the wrapper keeps `wrapped` as long as this data */
    return self;
}

bool qp_is_probe_wrapper(const PyObject *wrapper)
{
    return ((const qp_wrapper *)wrapper)->vectorcall == call_probe;
}

bool qp_is_probe_wrapper_of(PyObject *object, PyObject *wrapped)
{
    return qp_is_wrapper(object) && qp_is_probe_wrapper(object) &&
           ((const qp_wrapper *)object)->wrapped == wrapped;
}
