/* SQLite's own counters of the statements that the program runs.
 *
 * SQLite counts for each prepared statement as long as it lives, so a count is a difference: what
 * has been added since a statement began to work for one key. It is read when the statement
 * begins to work for another, when it is about to be gone, and once a second: a loop over one
 * statement costs a comparison a turn. Only the driver's own statement objects are counted, not
 * the BEGIN that it runs by itself, and not what SQLite's extensions run inside a statement.
 *
 * The functions of SQLite are looked up in the library that the driver has loaded.
 */
#ifndef QP_COUNTERS_COUNTERS_H
#define QP_COUNTERS_COUNTERS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "counters/connections.h"
#include "counters/pending_counters.h"
#include "counters/statement_events.h"

/* Looks up SQLite in the shared library at `library` (NULL: in the process itself) and counts
 * on every connection opened from now on. `connection` is one of the driver's, open and not in use:
 * on it the layout of the driver's objects is checked. Returns NULL, or why it cannot count
 * (static text). */
const char *qp_counters_start(const char *library, PyObject *connection);

/* Reads what is left and stops counting, for all drivers. Connections keep a callback that does
 * nothing, because taking it away might take away the program's own. */
void qp_counters_stop(void);

/* Counts also on new connections of a driver that has a SQLite for itself, which has just loaded
 * the core as an extension. Returns NULL, or why it cannot count (static text). */
const char *qp_counters_start_private(void);

/* Counts on a connection (borrowed) that was open before, in a call on it: it is open, and stays so
 * as long as the GIL is held. Nothing happens where it is counted already, where the program has
 * set a callback of its own, and where it is busy in another thread: then a later call does it. */
void qp_counters_attach(PyObject *connection);

/* After the call, with the GIL: counts the statement that has started in it from now on, and reads
 * what it has done, if the driver holds it in a statement object: in the cursor (borrowed, may be
 * anything) or among those that the connection keeps. What a virtual table has prepared in the
 * meantime is not held so. */
void qp_counters_identify(PyObject *connection, PyObject *cursor, const qp_active *call);

/* Makes a sqlite3.Connection tell also when its statements end, for calls that prepare statements
 * and drop them by themselves; calls of several threads may overlap. False: it is not counted, or
 * busy. */
bool qp_counters_trace_ends(PyObject *connection, bool ends);

/* The traced of a connection's statements; NULL: it is not counted, or the program has set a
 * callback on it which would be told of what is asked besides. `connection` is borrowed. */
qp_traced_connection *qp_counters_connection(PyObject *connection);

/* Whether an explained statement has run as it was explained: SQLite finds out that its schema is
 * no longer the database's only after it has told that the statement starts. */
bool qp_counters_explained(qp_traced_connection *traced, const qp_explanation *explanation);

/* Adds what was counted up to now to the aggregates; connections that run something just now
 * are left for the next time. */
void qp_counters_flush(void);

/* In a forked child: makes new locks, and forgets what is the parent's. */
void qp_counters_after_fork(void);

#endif
