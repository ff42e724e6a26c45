/* The first run of a statement, or its first run on a connection: from then on the connection is
 * counted, the plan is requested, and the text becomes a statement. */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "calls/call.h"
#include "statements/statements.h"

/* Before the call: counts its connection's statements, has SQLite report their ends where the
 * driver drops them, requests the plan. `ours`: the call is the program's. */
void qp_first_run_begin(qp_call *call, PyObject *connection, bool ours);

/* Returns whether it is still unknown which statement the call's text is. `result` as for
 * qp_call_end. */
static inline bool qp_first_run_is_undecided(const qp_call *call, PyObject *result)
{
    const qp_execution *e = call->execution;
    return !result || call->active.has_more || (e && qp_statement_is_held(e->meter.key.statement));
}

/* First after the call: decides which statement its text is, now that the database has accepted or
 * refused it. */
void qp_first_run_decide(qp_call *call, PyObject *result);

/* After that, where `active.has_more`: counts the statement from now on and keeps the plan. Returns
 * the ticks that queryprof took inside the call. */
int64_t qp_first_run_end(qp_call *call, PyObject *result);
