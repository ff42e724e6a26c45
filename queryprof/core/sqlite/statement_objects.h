/* The statement objects of sqlite3: each owns one prepared statement, and finalizes it when it is
 * deallocated. Watching them provides the last moment at which a statement's counters can be read.
 */
#pragma once

#include <Python.h>

/* Called with a sqlite3_stmt * that is about to be finalized. */
typedef void qp_statement_ends(void *statement);

/* Checks the layout of statement objects on one of `connection` (open and not in use), and calls
 * `ends` before any is deallocated. Returns NULL, or the reason for failure (static text). */
const char *qp_statement_objects_watch(PyObject *connection, qp_statement_ends *ends);

/* Returns the statement object that owns a statement (identity of a sqlite3_stmt). The object is
 * borrowed from the cursor or from the connection's cache, so it is valid only while the caller
 * holds the GIL. NULL if the driver does not own the statement. Calls no code of the program. */
PyObject *qp_statement_object(PyObject *connection, PyObject *cursor, const void *statement);

/* Restores the type. */
void qp_statement_objects_unwatch(void);
