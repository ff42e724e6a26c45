/* SQLite's own counters of the statements that the program runs.
 *
 * SQLite counts for each prepared statement until it is finalized, so a count is a difference: what
 * was added since a statement began to work for one key. It is read when the statement begins to
 * work for another key, before it is finalized, and once a second: a loop over one statement costs
 * one comparison per iteration. Only the driver's statement objects are counted, not the BEGIN that
 * it runs by itself, and not what SQLite's extensions run inside a statement.
 *
 * The functions of SQLite are looked up in the library that the driver has loaded.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "counters/connections.h"
#include "counters/pending_counters.h"
#include "counters/statement_events.h"

/* Looks up SQLite in the shared library at `library` (NULL: in the process itself) and counts on
 * every connection opened from now on. `connection` is one of the driver's, open and not in use:
 * the layout of the driver's objects is checked on it. Returns NULL, or the reason why it cannot
 * count (static text). */
const char *qp_counters_start(const char *library, PyObject *connection);

/* Why SQLite's work on files is unknown while counters are on; NULL if it is known. Static. */
const char *qp_counters_files_off(void);

/* Returns the number of connections that use the program's own VFS, whose file work is not seen. */
uint64_t qp_counters_unseen_files(void);

/* Reads the remaining counters and stops counting, for all drivers. Connections keep a callback
 * that does nothing, because removing it might remove the program's own. */
void qp_counters_stop(void);

/* Counts also on new connections of a driver with a private SQLite, which has just loaded the core
 * as an extension. Returns NULL, or the reason why it cannot count (static text). */
const char *qp_counters_start_private(void);

/* Counts on a connection (borrowed) that was open before, in a call on it: it stays open while the
 * GIL is held. Does nothing where it is counted already, where the program has set a callback, and
 * where it is busy in another thread: then a later call does it. */
void qp_counters_attach(PyObject *connection);

/* After the call: counts the statement that started in it, from its start, if a statement object of
 * the driver owns it: in the cursor (borrowed, any object) or in the connection's cache. Statements
 * that a virtual table has prepared are not counted. The caller must hold the GIL. */
void qp_counters_identify(PyObject *connection, PyObject *cursor, const qp_active *call);

/* Makes a sqlite3.Connection report also the ends of its statements, for calls that prepare
 * statements and drop them by themselves; calls of several threads may overlap. False if it is not
 * counted, or busy. */
bool qp_counters_trace_ends(PyObject *connection, bool ends);

/* Returns whether a connection (borrowed) is counted: SQLite then reports the start of its
 * statements, unless the program has set a trace callback since. */
bool qp_counters_traced(PyObject *connection);

/* The record of a connection (borrowed); NULL if it is not counted, or the program has set a
 * callback on it, which would also be called for queryprof's statements. */
qp_traced_connection *qp_counters_connection(PyObject *connection);

/* Returns whether a statement ran with the plan that was read. SQLite detects a changed schema only
 * after it has reported that the statement starts. */
bool qp_counters_explained(qp_traced_connection *traced, const qp_explanation *explanation);

/* In a forked child: makes new locks, and clears the parent's state. */
void qp_counters_after_fork(void);
