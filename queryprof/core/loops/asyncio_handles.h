/* asyncio's handles. asyncio's event loops run one handle for each callback and task step. */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* Returns a new callable that replaces Handle._run, the function `original`, and measures every
 * step. The callable runs the same code as asyncio, and leaves all failures to `original`.
 * `timer_type` is the type of timers. Callbacks of `heartbeat_type` are queryprof's own.
 * `task_type` is asyncio's type of tasks. Keeps new references to the types. Returns NULL with an
 * exception if a type lacks the expected slots or methods. */
PyObject *qp_handle_run_wrapper(PyTypeObject *stand_in_type, PyObject *original,
                                PyTypeObject *handle_type, PyTypeObject *timer_type,
                                PyTypeObject *task_type, PyTypeObject *heartbeat_type);

/* Releases the types. */
void qp_handles_clear(void);
