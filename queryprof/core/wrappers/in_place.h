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
 * attribute that holds the function. References to function and wrapper are taken until
 * qp_in_place_end. A function that has a wrapper already gets this one in front of it. False, and
 * nothing has changed, if this cannot be done: the wrapped object is not a Python function, or is
 * an `__init__`: CPython inlines its calls and ignores its vectorcall. Never raises. */
bool qp_in_place_begin(PyObject *wrapper, PyObject *name);

/* The wrapper through which the calls of a function go (borrowed); NULL: there is none. */
PyObject *qp_in_place_wrapper(PyObject *function);

/* Ends that. Does nothing for a wrapper that is not routed to, and leaves a vectorcall that
 * somebody else has set since. Never raises. */
void qp_in_place_end(PyObject *wrapper);
