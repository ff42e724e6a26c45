/* A callable around another callable, with the same call signature. A wrapper that replaces a
 * function also looks like that function: class, attributes, hash, equality, weak references. Not
 * every wrapper replaces a function: see in_place.h. */
#pragma once

#include <Python.h>
#include <stdbool.h>

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *wrapped; /* owned, like the next three fields */
    PyObject *extra;   /* may be NULL, like the next two fields; used by `vectorcall` */
    PyObject *referred;
    void *data;
    vectorcallfunc original; /* the original vectorcall of a function that stays in place; else
                              * NULL */
    PyObject *weak_references;
} qp_wrapper;

/* Calls the wrapped object, without calling the wrapper again. Returns a new reference; NULL with
 * the exception. The call may detach the wrapper. */
static inline PyObject *qp_wrapper_call(const qp_wrapper *self, PyObject *const *args,
                                        size_t flagged, PyObject *names)
{
    PyObject *wrapped = Py_NewRef(self->wrapped);
    PyObject *result = self->original ? self->original(wrapped, args, flagged, names)
                                      : PyObject_Vectorcall(wrapped, args, flagged, names);
    Py_DECREF(wrapped);
    return result;
}

/* Creates the heap type of wrappers. Returns a new reference, or NULL with an exception. The base
 * of the type is the type of wrappers for objects that do not bind to an instance. */
PyTypeObject *qp_wrapper_type(PyObject *module);

/* Returns whether an object is a wrapper. */
bool qp_is_wrapper(const PyObject *object);

/* Returns a new wrapper of this type, or of its base; NULL with an exception. Calls of the wrapper
 * go to `call`, everything else comes from `wrapped`. Keeps new references to `wrapped` and to
 * `extra`, which may be NULL. */
PyObject *qp_wrapper_new(PyTypeObject *type, vectorcallfunc call, PyObject *wrapped,
                         PyObject *extra);

/* Adds `bytes` bytes of zeroed data to a new wrapper, and the object to which the data refers
 * (keeps a new reference; may be NULL). Returns the data (owned by the wrapper, valid as long as
 * the wrapper); NULL with an exception. */
void *qp_wrapper_add_data(PyObject *wrapper, size_t bytes, PyObject *referred);
