/* Handoffs: functions that run in a different thread than the thread that submitted them.
 *
 * A submitted function is wrapped. While the function runs, the submitter's call path, span and
 * label also apply to its queries. If the function calls a driver, three times are added to the
 * sums of that call path: waiting for a thread, running, and waiting for the event loop to take the
 * result.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* Creates the heap type of wrapped functions. Returns a new reference, or NULL with an
 * exception. */
PyTypeObject *qp_handoff_type(PyObject *module);

/* Clears the sums. */
void qp_handoffs_clear(void);

/* Returns a new wrapper of `original`, a callable to which functions are submitted.
 *
 * `kind` names the owner of the threads that run the functions. `position` is the index of the
 * argument that holds the submitted function. `is_awaited`: the call returns a coroutine, which
 * ends with the function's result. `is_timed`: the call itself submits the function. `is_database`:
 * the function always counts as a driver call. NULL with an exception. */
PyObject *qp_handoff_wrapper(PyObject *module, PyObject *original, const char *kind,
                             Py_ssize_t position, bool is_awaited, bool is_timed, bool is_database);
