#include "wrappers/in_place.h"

#include "runtime/allocation.h"
#include "wrappers/wrapper.h"

#if PY_VERSION_HEX >= 0x030C0000

enum { BUCKETS = 256, ALIGNMENT_BITS = 4 };

typedef struct route {
    PyObject *function; /* owned */
    PyObject *wrapper;  /* owned */
    struct route *next;
} route;

static route *routes[BUCKETS];

static route **route_bucket(const PyObject *function)
{
    uintptr_t address = (uintptr_t)function >> ALIGNMENT_BITS;
    return &routes[(address ^ address >> 8) % BUCKETS];
}

static route *find_route(const PyObject *function)
{
    route *found = *route_bucket(function);
    while (found && found->function != function) {
        found = found->next;
    }
    return found;
}

static PyObject *call_wrapper(PyObject *function, PyObject *const *args, size_t flagged,
                              PyObject *names)
{
    /* A route ends only after the function has its own vectorcall again. */
    PyObject *wrapper = Py_NewRef(find_route(function)->wrapper); /* the call may end the route */
    PyObject *result = ((qp_wrapper *)wrapper)->vectorcall(wrapper, args, flagged, names);
    Py_DECREF(wrapper);
    return result;
}

PyObject *qp_in_place_wrapper(PyObject *function)
{
    const route *known = find_route(function);
    return known ? known->wrapper : NULL;
}

bool qp_in_place_install(PyObject *wrapper, PyObject *name)
{
    qp_wrapper *self = (qp_wrapper *)wrapper;
    PyObject *wrapped = self->wrapped;
    if (!PyFunction_Check(wrapped) || PyUnicode_CompareWithASCIIString(name, "__init__") == 0) {
        return false;
    }
    route *known = find_route(wrapped);
    if (known) { /* the new wrapper calls the previous one */
        self->wrapped = known->wrapper;
        known->wrapper = Py_NewRef(wrapper);
        Py_DECREF(wrapped);
        return true;
    }
    route *made = qp_allocate(1, sizeof *made);
    if (!made) {
        return false;
    }
    PyFunctionObject *function = (PyFunctionObject *)wrapped;
    route **bucket = route_bucket(wrapped);
    *made = (route){Py_NewRef(wrapped), Py_NewRef(wrapper), *bucket};
    *bucket = made;
    self->original = function->vectorcall;
    PyFunction_SetVectorcall(function, call_wrapper);
    return true;
}

/* Removes a wrapper from the chain of wrappers that begins with `first`. */
static void remove_from_chain(PyObject *first, PyObject *wrapper)
{
    qp_wrapper *before = (qp_wrapper *)first;
    while (before->wrapped != wrapper && qp_is_wrapper(before->wrapped)) {
        before = (qp_wrapper *)before->wrapped;
    }
    if (before->wrapped == wrapper) {
        const qp_wrapper *self = (qp_wrapper *)wrapper;
        before->original = self->original;
        Py_SETREF(before->wrapped, Py_NewRef(self->wrapped));
    }
}

void qp_in_place_remove(PyObject *wrapper)
{
    qp_wrapper *self = (qp_wrapper *)wrapper;
    PyObject *function = self->wrapped;
    while (qp_is_wrapper(function)) {
        function = ((qp_wrapper *)function)->wrapped;
    }
    route **at = route_bucket(function);
    while (*at && (*at)->function != function) {
        at = &(*at)->next;
    }
    route *known = *at;
    if (!known) {
        return;
    }
    if (known->wrapper != wrapper) {
        remove_from_chain(known->wrapper, wrapper);
    } else if (self->wrapped != function) {
        Py_SETREF(known->wrapper, Py_NewRef(self->wrapped));
    } else if (((PyFunctionObject *)function)->vectorcall == call_wrapper) {
        PyFunction_SetVectorcall((PyFunctionObject *)function, self->original);
        *at = known->next;
        Py_DECREF(known->function);
        Py_DECREF(known->wrapper);
        qp_free(known);
    }
}

#else

PyObject *qp_in_place_wrapper(PyObject *Py_UNUSED(function))
{
    return NULL;
}

bool qp_in_place_install(PyObject *Py_UNUSED(wrapper), PyObject *Py_UNUSED(name))
{
    return false;
}

void qp_in_place_remove(PyObject *Py_UNUSED(wrapper)) {}

#endif
