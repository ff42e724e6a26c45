/* The probe as an object: a callable that stands in for a function which cannot be exchanged
 * in its own PyMethodDef (Python functions, Cython's, unusual calling conventions).
 */
#ifndef QP_PROBE_OBJECT_H
#define QP_PROBE_OBJECT_H

#include <Python.h>

#include "probe.h"

typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *wrapped; /* owned */
    PyObject *extra;   /* owned; what the function that is called makes of it */
    qp_probe probe;    /* its cursor_type is owned */
} qp_stand_in;

/* Makes the heap type; a new reference, or NULL with an exception. */
PyTypeObject *qp_probe_object_type(PyObject *module);

/* A new probe object of that type around `wrapped` (a reference is taken). `awaited_type` makes
 * the objects that stand in for its coroutines. */
PyObject *qp_probe_object(PyTypeObject *type, const qp_probe *probe, PyObject *wrapped,
                          PyTypeObject *awaited_type);

/* The same with another function to call instead: all else is `wrapped`'s. A reference is taken to
 * `wrapped` and to `extra`, which may be NULL. */
PyObject *qp_probe_object_calling(PyTypeObject *type, vectorcallfunc call, PyObject *wrapped,
                                  PyObject *extra);

#endif
