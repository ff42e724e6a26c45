#include "probe_object.h"

#include <structmember.h>

#include "allocation.h"
#include "awaited_call.h"

static PyObject *call_probe(PyObject *callable, PyObject *const *args, size_t flagged,
                            PyObject *names)
{
    qp_stand_in *self = (qp_stand_in *)callable;
    Py_ssize_t positional = PyVectorcall_NARGS(flagged);
    Py_ssize_t all = positional + (names ? PyTuple_GET_SIZE(names) : 0);
    Py_ssize_t first = self->probe.has_receiver;
    PyObject *receiver = first && all ? args[0] : NULL;
    /* The statement comes first, by position or by the driver's own keyword for it. */
    PyObject *argument = all > first ? args[first] : NULL;
    PyObject *parameters = all > first + 1 ? args[first + 1] : NULL;
    PyObject *wrapped = Py_NewRef(self->wrapped); /* the call may detach us */
    if (self->probe.is_awaited) {
        PyObject *coroutine = PyObject_Vectorcall(wrapped, args, flagged, names);
        Py_DECREF(wrapped);
        return coroutine ? qp_awaited_call(self, coroutine, receiver, argument, parameters) : NULL;
    }
    qp_call *call = qp_call_begin(&self->probe, receiver, argument, parameters);
    PyObject *result = PyObject_Vectorcall(wrapped, args, flagged, names);
    if (call) {
        qp_call_end(call, result);
    }
    Py_DECREF(wrapped);
    return result;
}

static PyObject *bind(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(type))
{
    return !instance || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

/* Everything but calling is the wrapped function's: its name, doc, signature, module. */
static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
        return Py_NewRef(((qp_stand_in *)self)->wrapped);
    }
    if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0) {
        return Py_NewRef((PyObject *)Py_TYPE(self));
    }
    return PyObject_GetAttr(((qp_stand_in *)self)->wrapped, name);
}

static int set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    PyObject *wrapped = ((qp_stand_in *)self)->wrapped;
    return value ? PyObject_SetAttr(wrapped, name, value) : PyObject_DelAttr(wrapped, name);
}

static PyObject *represent(PyObject *self)
{
    return PyObject_Repr(((qp_stand_in *)self)->wrapped);
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((qp_stand_in *)self)->wrapped);
    Py_VISIT(((qp_stand_in *)self)->extra);
    Py_VISIT((PyObject *)((qp_stand_in *)self)->probe.cursor_type);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((qp_stand_in *)self)->wrapped);
    Py_CLEAR(((qp_stand_in *)self)->extra);
    Py_CLEAR(((qp_stand_in *)self)->probe.cursor_type);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(qp_stand_in, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, bind},
    {Py_tp_getattro, get_attribute},
    {Py_tp_setattro, set_attribute},
    {Py_tp_repr, represent},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "queryprof.core._core.Probe",
    .basicsize = sizeof(qp_stand_in),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyTypeObject *qp_probe_object_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

PyObject *qp_probe_object_calling(PyTypeObject *type, vectorcallfunc call, PyObject *wrapped,
                                  PyObject *extra)
{
    qp_stand_in *self = (qp_stand_in *)type->tp_alloc(type, 0);
    if (self) {
        self->vectorcall = call;
        self->wrapped = Py_NewRef(wrapped);
        self->extra = Py_XNewRef(extra);
    }
    return (PyObject *)self;
}

PyObject *qp_probe_object(PyTypeObject *type, const qp_probe *probe, PyObject *wrapped,
                          PyTypeObject *awaited_type)
{
    PyObject *self = qp_probe_object_calling(type, call_probe, wrapped, (PyObject *)awaited_type);
    if (self) {
        ((qp_stand_in *)self)->probe = *probe;
        Py_XINCREF(probe->cursor_type);
    }
    return self;
}
