/* The statement objects of sqlite3. Each object owns one prepared statement, and finalizes the
 * statement when the object is deallocated. That is the last moment at which the statement's
 * counters can be read, so queryprof watches these objects. */
#pragma once

#include <Python.h>

/* Called with a sqlite3_stmt * that is about to be finalized. */
typedef void qp_statement_ends(void *statement);

/* Checks the layout of statement objects on an object of `connection` (borrowed, open and not in
 * use). From then on, calls `ends` before a statement object is deallocated. Returns NULL, or the
 * reason for failure (static text). */
const char *qp_statement_objects_watch(PyObject *connection, qp_statement_ends *ends);

/* Returns the statement object that owns a statement (identity of a sqlite3_stmt). The object is
 * borrowed from the cursor or from the connection's cache, so it is valid only while the caller
 * holds the GIL. NULL if the driver does not own the statement. Calls no code of the program. */
PyObject *qp_statement_object(PyObject *connection, PyObject *cursor, const void *statement);

/* Restores the type. */
void qp_statement_objects_unwatch(void);
