/* Handoffs: functions that are called in another thread than the one that handed them over.
 *
 * A handed-over function is wrapped: while it runs, the call path, the span and the note of who
 * handed it over are known there; and where its time went is added up by that call path, if it
 * called a driver: waiting for a thread, running, waiting for the event loop to take the result.
 */
#ifndef QP_CONTEXT_HANDOFFS_H
#define QP_CONTEXT_HANDOFFS_H

#include <Python.h>
#include <stdbool.h>

/* Makes the heap type of wrapped functions; a new reference, or NULL with an exception. */
PyTypeObject *qp_handoff_type(PyObject *module);

/* Drops what was added up. */
void qp_handoffs_clear(void);

/* A new callable that stands in for `original`, to which functions are handed over.
 *
 * `kind` says whose threads they run in; `position` which argument is the function. `is_awaited`:
 * the call gives a coroutine, which ends with the function's result; `is_timed`: the function is
 * handed over in that very call; `is_database`: the function is a call of a driver, whatever it
 * is. NULL with an exception. */
PyObject *qp_handover_runner(PyObject *module, PyObject *original, const char *kind,
                             Py_ssize_t position, bool is_awaited, bool is_timed, bool is_database);

#endif
