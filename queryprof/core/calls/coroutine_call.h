/* A probed call that is awaited. The call is measured from the start of its coroutine to the
 * coroutine's end, including the time in which the event loop does other work. */
#pragma once

#include <Python.h>

#include "wrappers/wrapper.h"

/* Returns a coroutine (a new reference) that measures `coroutine`, which a call of `probe`'s
 * function returned. Takes over the reference to `coroutine`. The other arguments are as for
 * qp_call_begin; keeps new references to them. */
PyObject *qp_measured_coroutine(const qp_wrapper *probe, PyObject *coroutine, PyObject *receiver,
                                PyObject *argument, PyObject *parameters);
