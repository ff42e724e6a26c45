/* Executions: the statement whose rows a cursor returns, and the cost of that execution so far.
 *
 * An execution is young first: a call only stores its measurements, in one of a few slots that are
 * used in rotation. When all slots are used, all executions are flushed together (their sums are
 * added to the aggregates). This costs a fraction of flushing each execution separately, because
 * code and tables are loaded into the CPU caches only once. Executions whose rows may still be
 * fetched then move to a bounded table. If a set of that table is full, it drops an execution whose
 * rows were all fetched, or else the least recently used one. Later fetches from its
 * cursor belong to "(unknown)". Another cursor may reuse a cursor's address; the first execute on a
 * new cursor replaces the old execution. DuckDB's relations return rows without a cursor and report
 * their end (qp_execution_forget_cursor). */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "counters/counters.h"
#include "memory/execution_row.h"
#include "runtime/operations.h"
#include "sums/aggregates.h"
#include "threads/threads.h"

/* Allocates the table. It is never freed, because calls may be in progress when recording stops.
 * Returns false if out of memory. */
bool qp_executions_start(void);

/* Returns a slot for a new execution (owned by the table). The slot is marked as in use; the caller
 * sets all other fields. NULL if calls in progress use all slots. */
qp_execution *qp_execution_reserve_slot(void);

/* Copies a flushed execution whose rows may still be fetched to the table of old executions.
 * Returns the copy; NULL if calls in progress use all slots of the set. */
qp_execution *qp_execution_keep_for_fetches(const qp_execution *execution);

/* Returns the execution whose rows a cursor returns, or NULL. Valid until the next
 * qp_execution_reserve_slot. */
qp_execution *qp_execution_of_cursor(const void *cursor);

/* Like qp_execution_of_cursor, but faster for the execution from which the thread fetched last. */
static inline qp_execution *qp_execution_of_cursor_cached(const qp_thread *thread,
                                                          const void *cursor)
{
    qp_execution *e = thread->serving;
    return e && e->cursor == cursor ? e : qp_execution_of_cursor(cursor);
}

/* Forgets a cursor that was freed, because the next object at the cursor's address has nothing to
 * do with the cursor's execution. Changes nothing else, since an object may be freed at any
 * moment. */
void qp_execution_forget_cursor(const void *cursor);

/* Adds an execution's pending rows and its duration to the aggregates, and keeps the execution as
 * an exemplar or stack sample where that applies. `tstate` belongs to the running thread while the
 * execution's own frames run, else NULL; `sql` and `parameters` are borrowed and may be NULL. */
void qp_execution_flush(qp_execution *execution, PyThreadState *tstate, PyObject *sql,
                        PyObject *parameters);

/* Counts an error of the call that began an execution. The execution must be flushed. */
void qp_execution_count_error(qp_execution *execution);

/* Flushes all executions. */
void qp_executions_flush(void);

/* Calls `visit` for each slot of the tables that may hold an execution. Some of these slots are
 * free. */
void qp_executions_visit(void (*visit)(qp_execution *execution));

/* Returns the current aggregate of the operation that began an execution. */
qp_aggregate *qp_execution_aggregate(qp_execution *execution);

/* Records that an execution has pending rows again since its last flush. */
void qp_execution_mark_pending(const qp_execution *execution);

/* Frees the slot of an execution whose recording ended during a call. */
void qp_execution_abandon(qp_execution *execution);

/* Clears all executions, except executions of calls in progress. These calls clear their execution
 * when they end. Rows that are later fetched from the cursors of cleared executions belong to
 * "(unknown)". */
void qp_executions_clear(void);

/* In a forked child: also clears the executions of calls in progress, which no longer use any. */
void qp_executions_after_fork(void);
