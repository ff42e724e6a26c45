/* A callable that replaces another callable, and calls a function of queryprof before and after the
 * original. While the original runs, neither the callable nor the function has a Python frame,
 * because DuckDB searches for tables among the variables of its caller's frames. */
#pragma once

#include <Python.h>

/* Returns a new wrapper of `original`. `watch` is called with (is_over, the first two positional
 * arguments, the arguments `query` and `connection`, the result), with None for each missing value.
 * An exception of `watch` replaces the result. The object that `watch` returns before the call
 * lives as long as the call. The program's trace and profile functions do not see `watch`. Returns
 * NULL with an exception. */
PyObject *qp_watched_call_wrapper(PyTypeObject *wrapper_type, PyObject *original, PyObject *watch);
