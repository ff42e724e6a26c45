/* Measures a Python function without replacing it: the function object stays where it is, and its
 * vectorcall (PyFunction_SetVectorcall, Python 3.12 and later) calls the wrapper.
 *
 * Python 3.11 inlines calls of Python functions and ignores their vectorcall, so there the wrapper
 * itself takes the function's place.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* Routes the calls of the function that `wrapper` wraps through the wrapper. `name` is the
 * attribute that holds the function. Keeps new references to the function and the wrapper until
 * qp_in_place_remove. If a function already has a wrapper, the new wrapper is called first. Returns
 * false without a change if this is impossible: the wrapped object is not a Python function, or is
 * an `__init__`, whose calls CPython inlines without its vectorcall. Never raises. */
bool qp_in_place_install(PyObject *wrapper, PyObject *name);

/* Returns the wrapper through which the calls of a function go (borrowed); NULL if the function has
 * no wrapper. */
PyObject *qp_in_place_wrapper(PyObject *function);

/* Ends the routing of calls through a wrapper. Does nothing if the wrapper is not in use, and keeps
 * a vectorcall that other code has set since. Never raises. */
void qp_in_place_remove(PyObject *wrapper);
