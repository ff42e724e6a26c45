/* SQLite's own counters of the statements that the program runs.
 *
 * SQLite counts from the preparation of a statement until it is finalized. queryprof adds the
 * difference between two readings to one key. It reads the counters when the statement is used for
 * another key, before the statement is finalized, and once a second. So a loop over one statement
 * costs one comparison per iteration. Statements that the driver or SQLite's extensions run by
 * themselves are not counted, such as the driver's BEGIN.
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

/* Looks up SQLite in the shared library at `library` (NULL: in the process), and counts on every
 * connection opened from now on. `connection` is an open, unused connection of the driver, on which
 * the layout of the driver's objects is checked. Returns NULL, or the reason why it cannot count
 * (static text). */
const char *qp_counters_start(const char *library, PyObject *connection);

/* Returns the reason why file work is unknown while counters are on (static text); NULL if file
 * work is known. */
const char *qp_file_work_unknown_reason(void);

/* Returns the number of connections that use the program's own VFS, whose file work is not seen. */
uint64_t qp_connections_with_own_vfs(void);

/* Reads the remaining counters and stops counting, for all drivers. Connections keep a callback
 * that does nothing, because removing it might remove the program's own. */
void qp_counters_stop(void);

/* Counts also on new connections of a driver with a private SQLite, which has just loaded the core
 * as an extension. Returns NULL, or the reason why it cannot count (static text). */
const char *qp_counters_start_private(void);

/* Starts to count on a connection (borrowed) that was opened earlier. Must be called in a call on
 * the connection, which therefore stays open while the GIL is held. Does nothing if the connection
 * is already counted, if the program has set a callback, or if the connection is busy in another
 * thread. In the last case, a later call starts to count. */
void qp_counters_attach_connection(PyObject *connection);

/* Must be called after the driver's call. Counts the statement that started in the call, from its
 * start, if the driver has a statement object for it: in the cursor (borrowed, any object) or in
 * the connection's cache. Statements that a virtual table has prepared are not counted. The caller
 * must hold the GIL. */
void qp_counters_identify_statement(PyObject *connection, PyObject *cursor,
                                    const qp_active_call *call);

/* Makes SQLite also report the ends of a connection's statements, during calls that drop the
 * statements that they prepare. Calls of several threads may overlap. Returns false if the
 * connection is not counted, or is busy. */
bool qp_counters_trace_statement_ends(PyObject *connection, bool ends);

/* Returns whether a connection (borrowed) is counted: SQLite then reports the start of its
 * statements, unless the program has set a trace callback since. */
bool qp_connection_is_counted(PyObject *connection);

/* Returns the record of a connection (borrowed). NULL if the connection is not counted, or if the
 * program has set a callback, because queryprof's statements would also call it. */
qp_traced_connection *qp_counted_connection(PyObject *connection);

/* Returns whether a statement ran with the plan that was read. SQLite detects a changed schema only
 * after it has reported that the statement starts. */
bool qp_plan_was_used(qp_traced_connection *traced, const qp_explanation *explanation);

/* In a forked child: makes new locks, and clears the parent's state. */
void qp_counters_after_fork(void);
