/* Chooses the executions that are kept as exemplars and as stack samples, and stores their data. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/execution_row.h"

/* Keeps an execution as exemplar and as stack sample, if it is slow enough or sampled. `tstate`
 * belongs to the running thread while the execution's own frames run, else NULL; `sql` and
 * `parameters` are borrowed and may be NULL. */
void qp_execution_sample(qp_execution *execution, PyThreadState *tstate, PyObject *sql,
                         PyObject *parameters);

/* Keep SQL and parameters of each execution for exemplars. SQL and parameters may contain secrets,
 * so this is off by default. */
enum { QP_NOTES_PARAMETERS = 1 };
extern uint8_t qp_execution_notes;

/* Stores an execution's SQL and parameters while parameters are kept, because the execution may
 * become slow later, when its rows are fetched. `sql` and `parameters` are borrowed; the texts made
 * from them are owned here. */
void qp_execution_store_parameters(const qp_execution *execution, PyObject *sql,
                                   PyObject *parameters);

/* Sets whether SQL and parameters are kept, and clears the stored texts. */
void qp_executions_keep_parameters(bool keep);
