/* Explanations of calls that failed because a database was locked. If the user has enabled the
 * explanations, a function of queryprof adds a note with the holder of the lock to the
 * exception. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Sets the function that explains refusals (keeps a new reference; NULL removes it). Its arguments
 * are the exception, the database's path, whether the call's own connection has the write lock, and
 * whether the connection has read in its transaction and now wants to write. The caller must hold
 * the GIL. */
void qp_lock_refusal_set_explainer(PyObject *function);

/* Explains the current exception, which an ended call has raised. `path` is the number of the
 * database's path (see database_paths.h), or 0 if SQLite refused the lock without a wait. `writes`:
 * see qp_lock_time. `is_upgrade`: the transaction has read, and wants to write. Runs Python code,
 * and preserves the exception. The caller must hold the GIL. */
void qp_lock_refusal_explain(uint32_t path, bool writes, bool is_upgrade);
