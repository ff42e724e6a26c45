#include "attach/attach.h"

#include <stdbool.h>
#include <structmember.h>

#include "attach/trampolines.h"
#include "calls/probe_call.h"
#include "runtime/allocation.h"
#include "runtime/exception.h"
#include "wrappers/in_place.h"

#define CAPSULE_NAME "queryprof.attachment"

enum { DEEPEST_DECORATION = 8 };

typedef struct {
    qp_trampoline *trampoline;     /* NULL for a probe object, and after detaching */
    qp_function function;          /* the trampoline's function */
    qp_function *place;            /* pointer in the definition of a method or getter, which lives
                                    * as long as its module; NULL for a slot */
    PyWrapperDescrObject *wrapper; /* owned: the wrapper descriptor of a replaced type slot */
    qp_slot slot;
    PyObject *owner;    /* owned: the type or module that has the function */
    PyObject *name;     /* owned */
    PyObject *in_place; /* owned: the wrapper of a Python function that stays where it is */
    PyObject *replaced; /* owned: the object that a probe object replaced */
    PyObject *measured; /* owned: the replacement */
} attachment;

static void release_attachment(attachment *a)
{
    Py_XDECREF(a->wrapper);
    Py_XDECREF(a->owner);
    Py_XDECREF(a->name);
    Py_XDECREF(a->in_place);
    Py_XDECREF(a->replaced);
    Py_XDECREF(a->measured);
    qp_free(a);
}

static void release_capsule(PyObject *capsule)
{
    release_attachment(PyCapsule_GetPointer(capsule, CAPSULE_NAME));
}

/* Returns an attribute from the owner's own dict (a new reference); NULL with an exception. */
static PyObject *own_attribute(PyObject *owner, PyObject *name)
{
    PyObject *dict = PyObject_GetAttrString(owner, "__dict__");
    PyObject *found = dict ? PyObject_GetItem(dict, name) : NULL;
    Py_XDECREF(dict);
    return found;
}

int qp_set_type_attribute(PyTypeObject *type, PyObject *name, PyObject *value)
{
    unsigned long immutable = type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE;
    type->tp_flags &= ~immutable;
    int result = value ? PyObject_SetAttr((PyObject *)type, name, value)
                       : PyObject_DelAttr((PyObject *)type, name);
    type->tp_flags |= immutable;
    PyType_Modified(type);
    return result;
}

/* Sets an attribute of a type (immutable or not) or of a module. Returns 0, or -1 with an
 * exception. */
static int set_attribute(PyObject *owner, PyObject *name, PyObject *value)
{
    return PyType_Check(owner) ? qp_set_type_attribute((PyTypeObject *)owner, name, value)
                               : PyObject_SetAttr(owner, name, value);
}

/* Returns the offset of a type's member with one of two C types (T_LONG, T_OBJECT, ...), or 0 if
 * there is none. */
static Py_ssize_t member_offset(PyTypeObject *type, const char *name, int c_type, int or_type)
{
    PyObject *key = PyUnicode_FromString(name);
    PyObject *member = key ? own_attribute((PyObject *)type, key) : NULL;
    Py_ssize_t offset = 0;
    if (member && Py_IS_TYPE(member, &PyMemberDescr_Type)) {
        const PyMemberDef *definition = ((PyMemberDescrObject *)member)->d_member;
        bool is_as_declared = definition->type == c_type || definition->type == or_type;
        offset = is_as_declared ? definition->offset : 0;
    }
    qp_exception_clear(); /* no such attribute: its value stays unknown */
    Py_XDECREF(member);
    Py_XDECREF(key);
    return offset;
}

static qp_slot slot_of_name(PyObject *name)
{
    static const char *const names[QP_SLOT_NONE] = {"__next__", "__init__", "__getitem__",
                                                    "__setitem__"};
    for (int slot = 0; slot < QP_SLOT_NONE; slot++) {
        if (PyUnicode_CompareWithASCIIString(name, names[slot]) == 0) {
            return (qp_slot)slot;
        }
    }
    return QP_SLOT_NONE;
}

/* Returns the address of a slot in a type, or NULL if the type has none. */
static qp_function *slot_pointer(PyTypeObject *type, qp_slot slot)
{
    PyMappingMethods *mapping = type->tp_as_mapping;
    switch (slot) {
    case QP_SLOT_ITERNEXT:
        return (qp_function *)(void *)&type->tp_iternext;
    case QP_SLOT_INIT:
        return (qp_function *)(void *)&type->tp_init;
    case QP_SLOT_SUBSCRIPT:
        return mapping ? (qp_function *)(void *)&mapping->mp_subscript : NULL;
    case QP_SLOT_ASS_SUBSCRIPT:
        return mapping ? (qp_function *)(void *)&mapping->mp_ass_subscript : NULL;
    default:
        return NULL;
    }
}

/* Exchanges a slot in a type and in all subclasses that inherited the slot. Returns 0, or -1 with
 * an exception. */
static int exchange_slot(PyTypeObject *type, qp_slot slot, qp_function from, qp_function to)
{
    qp_function *place = slot_pointer(type, slot);
    PyObject *subclasses =
        PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", type);
    if (!subclasses) {
        return -1;
    }
    /* A type with another function has overridden the slot, but its subclasses may inherit from
     * another base. */
    if (place && *place == from) {
        *place = to;
    }
    int result = 0;
    for (Py_ssize_t i = 0; result == 0 && i < PyList_GET_SIZE(subclasses); i++) {
        result = exchange_slot((PyTypeObject *)PyList_GET_ITEM(subclasses, i), slot, from, to);
    }
    Py_DECREF(subclasses);
    /* No PyType_Modified: the attributes are the same, and the interpreter's caches stay valid. */
    return result;
}

/* Exchanges the function of a method or getter for the attachment's trampoline. Returns 1, or 0 if
 * the attachment has no trampoline. */
static int attach_definition(attachment *a, qp_function *place, const qp_probe *probe)
{
    if (!a->trampoline) {
        return 0;
    }
    a->place = place;
    a->trampoline->probe = *probe;
    a->trampoline->original = *place;
    *place = a->function;
    return 1;
}

static int attach_method(attachment *a, PyMethodDef *definition, const qp_probe *probe)
{
    a->trampoline = qp_trampoline_for_method(definition->ml_flags, &a->function);
    return attach_definition(a, (qp_function *)(void *)&definition->ml_meth, probe);
}

static int attach_getter(attachment *a, PyGetSetDef *definition, const qp_probe *probe)
{
    a->trampoline = qp_trampoline_for_getter(&a->function);
    return attach_definition(a, (qp_function *)(void *)&definition->get, probe);
}

static int attach_slot(attachment *a, PyWrapperDescrObject *wrapper, const qp_probe *probe)
{
    PyTypeObject *type = (PyTypeObject *)a->owner;
    a->slot = slot_of_name(a->name);
    qp_function *place = slot_pointer(type, a->slot);
    if (!place || (qp_function)wrapper->d_wrapped != *place) {
        return 0;
    }
    a->trampoline = qp_trampoline_for_slot(a->slot, &a->function);
    if (!a->trampoline) {
        return 0;
    }
    a->trampoline->probe = *probe;
    a->trampoline->original = *place;
    if (exchange_slot(type, a->slot, a->trampoline->original, a->function) < 0) {
        return -1;
    }
    a->wrapper = (PyWrapperDescrObject *)Py_NewRef((PyObject *)wrapper);
    wrapper->d_wrapped = (void *)a->function;
    return 1;
}

/* Returns the function of a class method or static method, or otherwise the object itself (a new
 * reference); NULL with an exception. */
static PyObject *unwrapped_function(PyObject *found)
{
    bool is_method =
        Py_IS_TYPE(found, &PyClassMethod_Type) || Py_IS_TYPE(found, &PyStaticMethod_Type);
    return is_method ? PyObject_GetAttrString(found, "__func__") : Py_NewRef(found);
}

/* Returns the wrapper as a class method or static method if the original is one (a new reference);
 * NULL with an exception. */
static PyObject *wrapper_in_original_form(PyObject *found, PyObject *wrapper)
{
    if (Py_IS_TYPE(found, &PyClassMethod_Type)) {
        return PyClassMethod_New(wrapper);
    }
    return Py_IS_TYPE(found, &PyStaticMethod_Type) ? PyStaticMethod_New(wrapper)
                                                   : Py_NewRef(wrapper);
}

/* Returns whether the owner has the function under several names. A call does not show which name
 * was used, so such a function cannot be measured in place. */
static bool has_other_names(PyObject *owner, PyObject *found)
{
    PyObject *dict = PyObject_GetAttrString(owner, "__dict__");
    PyObject *values = dict ? PyMapping_Values(dict) : NULL;
    int names = 0;
    for (Py_ssize_t i = 0; values && i < PyList_GET_SIZE(values); i++) {
        PyObject *value = PyList_GET_ITEM(values, i);
        names += value == found || qp_is_probe_wrapper_of(value, found);
    }
    qp_exception_clear(); /* no such dict: the function has one name */
    Py_XDECREF(values);
    Py_XDECREF(dict);
    return names > 1;
}

/* Returns whether a call of this object returns a coroutine. Also recognizes coroutine functions
 * inside a class method or a wrapper made with functools.wraps. */
static bool is_coroutine_function(PyObject *found)
{
    PyObject *function = unwrapped_function(found);
    bool is = false;
    for (int depth = 0; function && depth < DEEPEST_DECORATION && !is; depth++) {
        is = PyFunction_Check(function) &&
             ((PyCodeObject *)PyFunction_GET_CODE(function))->co_flags & CO_COROUTINE;
        PyObject *wrapped =
            PyFunction_Check(function) ? PyObject_GetAttrString(function, "__wrapped__") : NULL;
        Py_SETREF(function, wrapped);
    }
    qp_exception_clear(); /* no __wrapped__: the function is not a decorator's wrapper */
    Py_XDECREF(function);
    return is;
}

static int attach_object(attachment *a, PyObject *found, const qp_probe *probe,
                         const qp_module_state *types)
{
    if (!PyCallable_Check(found) && !Py_IS_TYPE(found, &PyClassMethod_Type)) {
        PyErr_Format(PyExc_TypeError, "%U of %R is no function", a->name, a->owner);
        return -1;
    }
    qp_probe stands_in = *probe;
    stands_in.stands_in = true;
    stands_in.has_receiver = PyType_Check(a->owner) && !Py_IS_TYPE(found, &PyStaticMethod_Type);
    stands_in.is_awaited = is_coroutine_function(found);
    PyObject *function = unwrapped_function(found);
    PyObject *called =
        function && PyMethod_Check(function) ? PyMethod_GET_FUNCTION(function) : function;
    PyObject *known = called ? qp_in_place_wrapper(called) : NULL;
    if (known && qp_is_probe_wrapper(known)) { /* already measured for another class or module */
        Py_DECREF(function);
        return 0;
    }
    PyObject *wrapper = function ? qp_probe_wrapper_new(types->wrapper_type, &stands_in, function,
                                                        types->coroutine_proxy_type)
                                 : NULL;
    Py_XDECREF(function);
    if (!wrapper) {
        return -1;
    }
    if (!has_other_names(a->owner, found) && qp_in_place_install(wrapper, a->name)) {
        a->in_place = wrapper;
        return 0;
    }
    a->replaced = Py_NewRef(found);
    a->measured = wrapper_in_original_form(found, wrapper);
    Py_DECREF(wrapper);
    return a->measured ? set_attribute(a->owner, a->name, a->measured) : -1;
}

static int attach_attribute(attachment *a, PyObject *found, const qp_probe *probe,
                            const qp_module_state *types)
{
    int attached = 0;
    if (probe->system != QP_SYSTEM_SQLITE) {
        /* Functions that are exchanged in place read their text as SQL for SQLite. */
    } else if (Py_IS_TYPE(found, &PyMethodDescr_Type)) {
        attached = attach_method(a, ((PyMethodDescrObject *)found)->d_method, probe);
    } else if (Py_IS_TYPE(found, &PyGetSetDescr_Type)) {
        attached = attach_getter(a, ((PyGetSetDescrObject *)found)->d_getset, probe);
    } else if (Py_IS_TYPE(found, &PyWrapperDescr_Type)) {
        attached = attach_slot(a, (PyWrapperDescrObject *)found, probe);
    }
    if (attached == 0) {
        return attach_object(a, found, probe, types);
    }
    Py_XINCREF(attached > 0 ? probe->cursor_type : NULL); /* reference for the trampoline */
    return attached < 0 ? -1 : 0;
}

PyObject *qp_attach(PyObject *owner, PyObject *name, const qp_probe *given,
                    const qp_module_state *types)
{
    PyObject *capsule = NULL;
    PyObject *found = own_attribute(owner, name);
    attachment *a = found ? qp_allocate(1, sizeof *a) : NULL;
    if (!a) {
        if (found) {
            PyErr_NoMemory();
        }
        goto done;
    }
    a->owner = Py_NewRef(owner);
    a->name = Py_NewRef(name);
    capsule = PyCapsule_New(a, CAPSULE_NAME, release_capsule);
    if (!capsule) {
        release_attachment(a);
        goto done;
    }
    qp_probe probe = *given;
    PyTypeObject *cursor_type = given->cursor_type;
    if (cursor_type) {
        probe.rowcount_offset = member_offset(cursor_type, "rowcount", T_LONG, T_LONG);
        /* A connection is only used with the SQLite of sqlite3. */
        probe.connection_offset =
            given->has_own_sqlite ? 0
                                  : member_offset(cursor_type, "connection", T_OBJECT, T_OBJECT_EX);
    }
    if (attach_attribute(a, found, &probe, types) < 0) {
        Py_CLEAR(capsule);
    }
done:
    Py_XDECREF(found);
    return capsule;
}

static int detach_object(attachment *a)
{
    PyObject *now = own_attribute(a->owner, a->name);
    int result = 0;
    if (now == a->measured) { /* otherwise leave it: another tool has replaced it since */
        result = set_attribute(a->owner, a->name, a->replaced);
    }
    qp_exception_clear();
    Py_XDECREF(now);
    Py_CLEAR(a->measured);
    return result;
}

int qp_detach(PyObject *capsule)
{
    attachment *a = PyCapsule_GetPointer(capsule, CAPSULE_NAME);
    if (!a) {
        return -1;
    }
    if (a->in_place) {
        qp_in_place_remove(a->in_place);
        Py_CLEAR(a->in_place);
        return 0;
    }
    if (a->measured) {
        return detach_object(a);
    }
    qp_trampoline *t = a->trampoline;
    if (!t) {
        return 0;
    }
    if (a->place) {
        if (*a->place != a->function) {
            return 0; /* another tool has exchanged the pointer since, and may call ours */
        }
        *a->place = t->original;
    } else {
        a->wrapper->d_wrapped = (void *)t->original;
        if (exchange_slot((PyTypeObject *)a->owner, a->slot, a->function, t->original) < 0) {
            return -1;
        }
    }
    a->trampoline = NULL;
    t->is_taken = false;
    Py_CLEAR(t->probe.cursor_type);
    return 0;
}
