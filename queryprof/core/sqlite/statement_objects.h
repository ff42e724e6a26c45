/* The statement objects of sqlite3: each owns one prepared statement, and finalizes it when it
 * goes. Watching them tells the last moment at which a statement can be read.
 */
#ifndef QP_SQLITE_STATEMENT_OBJECTS_H
#define QP_SQLITE_STATEMENT_OBJECTS_H

#include <Python.h>

/* Called with a sqlite3_stmt * that is about to be finalized. */
typedef void qp_statement_ends(void *statement);

/* Checks the layout of statement objects on one of `connection` (open, used by no one else), and
 * tells `ends` before any is deallocated. Returns NULL, or why not (static text). */
const char *qp_statement_objects_watch(PyObject *connection, qp_statement_ends *ends);

/* The statement object that holds a statement (identity of a sqlite3_stmt), for the cursor or for
 * the connection that keeps its last ones: borrowed from these, so valid with the GIL alone; NULL:
 * the driver does not hold it. Calls no code of the program. */
PyObject *qp_statement_object(PyObject *connection, PyObject *cursor, const void *statement);

/* Puts the type back as it was. */
void qp_statement_objects_unwatch(void);

#endif
