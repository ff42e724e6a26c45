#include "calls/probe_call.h"

#include "calls/coroutine_call.h"
#include "wrappers/wrapper.h"

static PyObject *call_probe(PyObject *callable, PyObject *const *args, size_t flagged,
                            PyObject *names)
{
    const qp_wrapper *self = (qp_wrapper *)callable;
    const qp_probe *probe = self->data;
    Py_ssize_t positional = PyVectorcall_NARGS(flagged);
    Py_ssize_t all = positional + (names ? PyTuple_GET_SIZE(names) : 0);
    Py_ssize_t first = probe->has_receiver;
    PyObject *receiver = first && all ? args[0] : NULL;
    /* The statement comes first, by position or by the driver's own keyword for it. */
    PyObject *argument = all > first ? args[first] : NULL;
    PyObject *parameters = all > first + 1 ? args[first + 1] : NULL;
    PyObject *wrapped = Py_NewRef(self->wrapped); /* the call may detach us */
    if (probe->is_awaited) {
        PyObject *coroutine = PyObject_Vectorcall(wrapped, args, flagged, names);
        Py_DECREF(wrapped);
        return coroutine ? qp_coroutine_call(self, coroutine, receiver, argument, parameters)
                         : NULL;
    }
    qp_call *call = qp_call_begin(probe, receiver, argument, parameters);
    PyObject *result = PyObject_Vectorcall(wrapped, args, flagged, names);
    if (call) {
        qp_call_end(call, result);
    }
    Py_DECREF(wrapped);
    return result;
}

PyObject *qp_probe_call(PyTypeObject *type, const qp_probe *probe, PyObject *wrapped,
                        PyTypeObject *coroutine_proxy_type)
{
    PyObject *self = qp_wrapper_new(type, call_probe, wrapped, (PyObject *)coroutine_proxy_type);
    qp_probe *held = self ? qp_wrapper_hold(self, sizeof *held, probe->cursor_type) : NULL;
    if (!held) {
        Py_XDECREF(self);
        return NULL;
    }
    *held = *probe;
    return self;
}
