/* Work for the first run of a statement, or its first run on a connection: starts to count the
 * connection's statements, decides which statement a text belongs to, and requests the statement's
 * plan. */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "calls/call.h"
#include "statements/statements.h"

/* Must be called before the driver's call. Starts to count the statements of the connection, and
 * requests the plan. If the driver drops its statements, makes SQLite report their ends. `ours`:
 * the program's code makes the call. Keeps a reference to `connection` until qp_first_run_end. */
void qp_first_run_begin(qp_call *call, PyObject *connection, bool ours);

/* Returns whether the statement of the call's text is still undecided. `result` is as for
 * qp_call_end. */
static inline bool qp_first_run_is_undecided(const qp_call *call, PyObject *result)
{
    const qp_execution *e = call->execution;
    return !result || call->active.has_more ||
           (e && qp_statement_is_not_yet_accepted(e->meter.key.statement));
}

/* Must be called first after the call. Decides which statement the text belongs to, now that the
 * database has accepted or refused the text. */
void qp_first_run_decide_statement(qp_call *call, PyObject *result);

/* Must be called after qp_first_run_decide_statement if `active.has_more`. Counts the statement
 * from now on and keeps the plan. Returns the ticks that queryprof took inside the call. */
int64_t qp_first_run_end(qp_call *call, PyObject *result);
