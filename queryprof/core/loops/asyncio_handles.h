/* asyncio's handles: what the stock event loops run, each callback and task step one of them. */
#ifndef QP_LOOPS_ASYNCIO_HANDLES_H
#define QP_LOOPS_ASYNCIO_HANDLES_H

#include <Python.h>
#include <stdbool.h>

/* A new callable to stand in for Handle._run, the function `original`, which measures every step;
 * it runs what asyncio runs, and leaves all that goes wrong to `original`. Timers are instances of
 * `timer_type`; callbacks of `heartbeat_type` are not the program's; `task_type` is asyncio's own
 * task. NULL with an exception: these are not the types that it knows. */
PyObject *qp_handle_runner(PyTypeObject *stand_in_type, PyObject *original,
                           PyTypeObject *handle_type, PyTypeObject *timer_type,
                           PyTypeObject *task_type, PyTypeObject *heartbeat_type);

/* Gives back the types. */
void qp_handles_clear(void);

#endif
