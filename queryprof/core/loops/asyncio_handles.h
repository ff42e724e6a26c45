/* asyncio's handles: the stock event loops run one for each callback and task step. */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* Returns a new callable that replaces Handle._run, the function `original`, and measures every
 * step. It runs the same code as asyncio, and leaves all failures to `original`. Timers are
 * instances of `timer_type`; callbacks of `heartbeat_type` are not the program's; `task_type` is
 * asyncio's own task. NULL with an exception: the types are not the expected ones. */
PyObject *qp_handle_runner(PyTypeObject *stand_in_type, PyObject *original,
                           PyTypeObject *handle_type, PyTypeObject *timer_type,
                           PyTypeObject *task_type, PyTypeObject *heartbeat_type);

/* Releases the types. */
void qp_handles_clear(void);
