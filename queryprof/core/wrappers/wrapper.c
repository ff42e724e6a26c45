#include "wrappers/wrapper.h"

#include <stdbool.h>
#include <string.h>
#include <structmember.h>

#include "runtime/allocation.h"

static PyObject *bind(PyObject *self, PyObject *instance, PyObject *type)
{
    PyObject *wrapped = ((qp_wrapper *)self)->wrapped;
    if (!instance || instance == Py_None) {
        return Py_NewRef(self);
    }
    if (!PyFunction_Check(wrapped)) { /* the wrapped object may refuse this instance */
        PyObject *bound = Py_TYPE(wrapped)->tp_descr_get(wrapped, instance, type);
        if (!bound) {
            return NULL;
        }
        Py_DECREF(bound);
        if (bound == wrapped) {
            return Py_NewRef(self); /* the wrapped object does not bind */
        }
    }
    return PyMethod_New(self, instance);
}

/* Returns whether reading the object through an instance binds it to the instance. In Python 3.13 a
 * partial object has a tp_descr_get that warns and does not bind. */
static bool does_bind(PyObject *object)
{
    bool is_partial = strcmp(Py_TYPE(object)->tp_name, "functools.partial") == 0;
    return Py_TYPE(object)->tp_descr_get && !PyMethod_Check(object) &&
           !(is_partial && PY_VERSION_HEX < 0x030E0000);
}

static bool is_one_of(PyObject *name, const char *const *names)
{
    while (*names && PyUnicode_CompareWithASCIIString(name, *names) != 0) {
        names++;
    }
    return *names != NULL;
}

/* All attributes come from the wrapped function (name, doc, signature, module, class), except
 * attributes that would return the unmeasured function: for calling, binding, copying and
 * pickling. */
static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    static const char *const calls[] = {"__call__", NULL};
    static const char *const binds[] = {"__get__", NULL};
    static const char *const copies[] = {"__reduce__", "__reduce_ex__", NULL};
    PyObject *wrapped = ((qp_wrapper *)self)->wrapped;
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
        return Py_NewRef(wrapped);
    }
    if (is_one_of(name, calls) || (does_bind(wrapped) && is_one_of(name, binds)) ||
        (PyFunction_Check(wrapped) && is_one_of(name, copies))) {
        return PyObject_GenericGetAttr(self, name);
    }
    return PyObject_GetAttr(wrapped, name);
}

static Py_hash_t hash(PyObject *self)
{
    return PyObject_Hash(((qp_wrapper *)self)->wrapped);
}

/* The wrapped function and its wrapper are equal: without queryprof they are the same object. */
static PyObject *compare(PyObject *self, PyObject *other, int operation)
{
    PyObject *compared = Py_IS_TYPE(other, Py_TYPE(self)) ? ((qp_wrapper *)other)->wrapped : other;
    return PyObject_RichCompare(((qp_wrapper *)self)->wrapped, compared, operation);
}

/* A function is pickled, and copied, by its name. */
static PyObject *reduce(PyObject *self, PyObject *Py_UNUSED(args))
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
    PyObject_ClearWeakRefs(self);
    clear(self);
    qp_free(((qp_wrapper *)self)->data);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {"__reduce_ex__", reduce, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(qp_wrapper, vectorcall), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(qp_wrapper, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_descr_get, bind}, /* must be first, because the fields of the base type follow it */
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getattro, get_attribute},
    {Py_tp_setattro, set_attribute},
    {Py_tp_repr, represent},
    {Py_tp_hash, hash},
    {Py_tp_richcompare, compare},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "queryprof.core._core.Probe",
    .basicsize = sizeof(qp_wrapper),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots + 1,
};

static PyType_Spec binding_spec = {
    .name = "queryprof.core._core.Probe",
    .basicsize = sizeof(qp_wrapper),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

bool qp_is_wrapper(const PyObject *object)
{
    return Py_TYPE(object)->tp_dealloc == dealloc;
}

PyTypeObject *qp_wrapper_type(PyObject *module)
{
    PyObject *base = PyType_FromModuleAndSpec(module, &spec, NULL);
    PyObject *type = base ? PyType_FromModuleAndSpec(module, &binding_spec, base) : NULL;
    Py_XDECREF(base);
    return (PyTypeObject *)type;
}

PyObject *qp_wrapper_new(PyTypeObject *type, vectorcallfunc call, PyObject *wrapped,
                         PyObject *extra)
{
    PyTypeObject *made = does_bind(wrapped) ? type : type->tp_base;
    qp_wrapper *self = (qp_wrapper *)made->tp_alloc(made, 0);
    if (self) {
        self->vectorcall = call;
        self->wrapped = Py_NewRef(wrapped);
        self->extra = Py_XNewRef(extra);
    }
    return (PyObject *)self;
}

void *qp_wrapper_add_data(PyObject *wrapper, size_t bytes, PyObject *referred)
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
