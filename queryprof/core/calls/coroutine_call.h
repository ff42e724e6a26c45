/* A probed call that is awaited: it is measured from where its coroutine starts to where it ends,
 * the time in which the event loop does other work included.
 */
#ifndef QP_CALLS_COROUTINE_CALL_H
#define QP_CALLS_COROUTINE_CALL_H

#include <Python.h>

#include "wrappers/wrapper.h"

/* The coroutine of a call of `probe`'s function, measured; takes the reference. The arguments are
 * as for qp_call_begin; references are taken. */
PyObject *qp_coroutine_call(const qp_wrapper *probe, PyObject *coroutine, PyObject *receiver,
                            PyObject *argument, PyObject *parameters);

#endif
