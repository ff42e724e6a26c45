#include "calls/probe_call.h"

#include <stdbool.h>

#include "calls/coroutine_call.h"
#include "wrappers/wrapper.h"

/* What a call is measured with; owned. */
typedef struct {
    PyObject *text, *parameters;
} measured;

/* Of arguments from `first` on; the statement is the first one, by position or by the driver's own
 * keyword for it, or an attribute of the receiver. */
static measured measured_of(const qp_probe *probe, PyObject *receiver, PyObject *const *args,
                            Py_ssize_t first, Py_ssize_t positional, Py_ssize_t all)
{
    measured found = {NULL, NULL};
    if (probe->text_of) {
        found.text = receiver ? PyObject_GetAttr(receiver, probe->text_of) : NULL;
        PyErr_Clear(); /* then the statement stays unknown, and the call will say what is wrong */
    } else {
        found.text = all > first ? Py_NewRef(args[first]) : NULL;
        first++;
    }
    if (probe->returns == QP_RETURNS_CURSOR) {
        found.parameters = all > first ? Py_NewRef(args[first]) : NULL;
    } else if (positional > first) { /* each is a parameter */
        found.parameters = PyTuple_New(positional - first);
        for (Py_ssize_t i = first; found.parameters && i < positional; i++) {
            PyTuple_SET_ITEM(found.parameters, i - first, Py_NewRef(args[i]));
        }
        PyErr_Clear();
    }
    return found;
}

static PyObject *call_probe(PyObject *callable, PyObject *const *args, size_t flagged,
                            PyObject *names)
{
    const qp_wrapper *self = (qp_wrapper *)callable;
    const qp_probe *probe = self->data;
    Py_ssize_t positional = PyVectorcall_NARGS(flagged);
    Py_ssize_t all = positional + (names ? PyTuple_GET_SIZE(names) : 0);
    Py_ssize_t first = probe->has_receiver;
    PyObject *receiver = first && all ? args[0] : NULL;
    PyObject *wrapped = Py_NewRef(self->wrapped); /* the call may detach us */
    measured is = measured_of(probe, receiver, args, first, positional, all);
    PyObject *result;
    if (probe->is_awaited) {
        PyObject *coroutine = PyObject_Vectorcall(wrapped, args, flagged, names);
        result =
            coroutine ? qp_coroutine_call(self, coroutine, receiver, is.text, is.parameters) : NULL;
    } else {
        qp_call *call = qp_call_begin(probe, receiver, is.text, is.parameters);
        result = PyObject_Vectorcall(wrapped, args, flagged, names);
        if (call) {
            qp_call_end(call, result);
        }
    }
    Py_XDECREF(is.parameters);
    Py_XDECREF(is.text);
    Py_DECREF(wrapped);
    return result;
}

PyObject *qp_probe_call(PyTypeObject *type, const qp_probe *probe, PyObject *wrapped,
                        PyTypeObject *coroutine_proxy_type)
{
    PyObject *self = qp_wrapper_new(type, call_probe, wrapped, (PyObject *)coroutine_proxy_type);
    /* A probe has one of both at most. */
    PyObject *referred = probe->text_of ? probe->text_of : (PyObject *)probe->cursor_type;
    qp_probe *held = self ? qp_wrapper_hold(self, sizeof *held, referred) : NULL;
    if (!held) {
        Py_XDECREF(self);
        return NULL;
    }
    *held = *probe;
    return self;
}
