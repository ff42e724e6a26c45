/* Explanations of calls that failed because a database was locked: a function of queryprof's own
 * adds to their exceptions who has the lock. There is one only if the user wants it.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Sets the function that explains refusals (keeps a new reference; NULL removes it). Its arguments
 * are the exception, the database's path, whether the call's own connection has the write lock, and
 * whether it has read in its transaction and now wants to write. The caller must hold the GIL. */
void qp_refusal_explain_by(PyObject *function);

/* Explains the exception that is set, of a call that has ended; `path`: of the database, a number
 * of database_paths.h, 0 where SQLite refused it without a wait; `writes`: see qp_file_work;
 * `is_upgrade`: its transaction has read, and would write. Runs Python code, and keeps the
 * exception. The caller must hold the GIL. */
void qp_refusal_explain(uint32_t path, bool writes, bool is_upgrade);
