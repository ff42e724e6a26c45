/* Explanations of calls that failed because a database was locked: a function of queryprof's own
 * adds to their exceptions who has the lock. There is one only if the user wants it.
 */
#pragma once

#include <Python.h>
#include <stdint.h>

/* Sets the function (a new reference is kept; NULL: there is none). It is called with the exception
 * and the path of the database. With the GIL. */
void qp_refusal_explain_by(PyObject *function);

/* Explains the exception that is set, of a call that has ended; `path`: of the database, a number
 * of locks.h. Runs Python code, and keeps the exception. With the GIL. */
void qp_refusal_explain(uint32_t path);
