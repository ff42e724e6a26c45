/* Work for the first run of a statement, or its first run on a connection. From then on, the
 * connection's statements are counted. The text gets a statement, whose plan is requested. */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "calls/call.h"
#include "statements/statements.h"

/* Before the call: starts to count the statements of the connection, and requests the plan. If the
 * driver drops its statements, SQLite is set to report their ends. `ours`: the program's code makes
 * the call. */
void qp_first_run_begin(qp_call *call, PyObject *connection, bool ours);

/* Returns whether the statement of the call's text is still undecided. `result` is as for
 * qp_call_end. */
static inline bool qp_first_run_is_undecided(const qp_call *call, PyObject *result)
{
    const qp_execution *e = call->execution;
    return !result || call->active.has_more || (e && qp_statement_is_held(e->meter.key.statement));
}

/* Must be called first after the call. Decides which statement the text belongs to, now that the
 * database has accepted or refused the text. */
void qp_first_run_decide(qp_call *call, PyObject *result);

/* Must be called after qp_first_run_decide if `active.has_more`. Counts the statement from now on
 * and keeps the plan. Returns the ticks that queryprof took inside the call. */
int64_t qp_first_run_end(qp_call *call, PyObject *result);
