#include "wrappers/wrapper.h"

#include <structmember.h>

#include "runtime/allocation.h"

static PyObject *bind(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(type))
{
    return !instance || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

/* Everything but calling is the wrapped function's: its name, doc, signature, module. */
static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
        return Py_NewRef(((qp_wrapper *)self)->wrapped);
    }
    if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0) {
        return Py_NewRef((PyObject *)Py_TYPE(self));
    }
    PyObject *wrapped = ((qp_wrapper *)self)->wrapped;
    if (PyFunction_Check(wrapped) && PyUnicode_CompareWithASCIIString(name, "__reduce_ex__") == 0) {
        return PyObject_GenericGetAttr(self, name);
    }
    return PyObject_GetAttr(wrapped, name);
}

/* A function is pickled, and copied, by its name. */
static PyObject *reduce(PyObject *self, PyObject *Py_UNUSED(protocol))
{
    return PyObject_GetAttrString(((qp_wrapper *)self)->wrapped, "__qualname__");
}

static int set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    PyObject *wrapped = ((qp_wrapper *)self)->wrapped;
    return value ? PyObject_SetAttr(wrapped, name, value) : PyObject_DelAttr(wrapped, name);
}

static PyObject *represent(PyObject *self)
{
    return PyObject_Repr(((qp_wrapper *)self)->wrapped);
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((qp_wrapper *)self)->wrapped);
    Py_VISIT(((qp_wrapper *)self)->extra);
    Py_VISIT(((qp_wrapper *)self)->referred);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((qp_wrapper *)self)->wrapped);
    Py_CLEAR(((qp_wrapper *)self)->extra);
    Py_CLEAR(((qp_wrapper *)self)->referred);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    qp_release(((qp_wrapper *)self)->data);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"__reduce_ex__", reduce, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(qp_wrapper, vectorcall), READONLY, NULL},
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
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "queryprof.core._core.Probe",
    .basicsize = sizeof(qp_wrapper),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyTypeObject *qp_wrapper_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

PyObject *qp_wrapper_new(PyTypeObject *type, vectorcallfunc call, PyObject *wrapped,
                         PyObject *extra)
{
    qp_wrapper *self = (qp_wrapper *)type->tp_alloc(type, 0);
    if (self) {
        self->vectorcall = call;
        self->wrapped = Py_NewRef(wrapped);
        self->extra = Py_XNewRef(extra);
    }
    return (PyObject *)self;
}

void *qp_wrapper_hold(PyObject *wrapper, size_t bytes, PyObject *referred)
{
    qp_wrapper *self = (qp_wrapper *)wrapper;
    self->data = qp_allocate(1, bytes);
    if (!self->data) {
        PyErr_NoMemory();
        return NULL;
    }
    self->referred = Py_XNewRef(referred);
    return self->data;
}
