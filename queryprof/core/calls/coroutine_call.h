/* A probed call that is awaited. It is measured from the start of its coroutine to the coroutine's
 * end, including the time in which the event loop does other work.
 */
#pragma once

#include <Python.h>

#include "wrappers/wrapper.h"

/* Returns the measured coroutine of a call of `probe`'s function; takes over the reference to
 * `coroutine`. The arguments are as for qp_call_begin; references are taken. */
PyObject *qp_coroutine_call(const qp_wrapper *probe, PyObject *coroutine, PyObject *receiver,
                            PyObject *argument, PyObject *parameters);
