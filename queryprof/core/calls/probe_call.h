/* The probe as a callable, where a function cannot be exchanged in its own PyMethodDef (Python
 * functions, Cython's, unusual calling conventions).
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "calls/probe.h"

/* A new wrapper of that type that measures `wrapped` (a reference is taken). `coroutine_proxy_type`
 * makes the proxies of its coroutines. NULL with an exception. */
PyObject *qp_probe_call(PyTypeObject *type, const qp_probe *probe, PyObject *wrapped,
                        PyTypeObject *coroutine_proxy_type);

/* Returns whether a wrapper has this type. */
bool qp_probe_call_is(const PyObject *wrapper);

/* Returns whether an object of any type is such a wrapper around `wrapped`. */
bool qp_probe_call_wraps(PyObject *object, PyObject *wrapped);
