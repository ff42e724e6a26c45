/* The probe as a callable, for functions that cannot be replaced in their own PyMethodDef (Python
 * functions, Cython's, unusual calling conventions). */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "calls/probe.h"

/* Returns a new wrapper of this type that measures `wrapped` (keeps a new reference).
 * `coroutine_proxy_type` is the type of the proxies for the coroutines of `wrapped`. NULL with an
 * exception. */
PyObject *qp_probe_wrapper_new(PyTypeObject *type, const qp_probe *probe, PyObject *wrapped,
                               PyTypeObject *coroutine_proxy_type);

/* Returns whether a wrapper was made by qp_probe_wrapper_new. */
bool qp_is_probe_wrapper(const PyObject *wrapper);

/* Returns whether an object of any type is a wrapper by qp_probe_wrapper_new of `wrapped`. */
bool qp_is_probe_wrapper_of(PyObject *object, PyObject *wrapped);
