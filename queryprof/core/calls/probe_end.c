#include "calls/probe.h"

#include <string.h>

#include "calls/call_rows.h"
#include "calls/call_stack.h"
#include "calls/execution_samples.h"
#include "calls/file_work_end.h"
#include "calls/first_run.h"
#include "calls/refusal.h"
#include "calls/workload.h"
#include "context/spans.h"
#include "counters/locks.h"
#include "lines/line_choice.h"
#include "lines/line_watch.h"
#include "loops/steps.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/periodic_work.h"
#include "stacks/call_paths.h"
#include "sums/errors.h"
#include "sums/parameters.h"
#include "sums/recent_calls.h"
#include "sums/samples.h"
#include "sums/timeline.h"

enum { ROWS_ALWAYS_TIMED = 8, ROW_SAMPLING = 16 }; /* used only if reading the clock is expensive */

static QP_COLD bool count_error(const qp_key *key, qp_call *call)
{
    PyObject *exception = PyErr_Occurred();
    bool is_end = exception == PyExc_StopIteration || exception == PyExc_StopAsyncIteration;
    if (exception && PyType_Check(exception) && !is_end) {
        qp_file_work *work = &call->active.work;
        work->failed = qp_count_exception(key, work->waits && work->would_write);
        return true;
    }
    return false; /* a StopIteration, or no exception at the end of an iteration */
}

/* Counts rows of a cursor whose execute the probe did not see. */
static QP_COLD void end_unknown_fetch(qp_call *call, PyObject *result, int64_t ticks)
{
    qp_key key = {.statement = QP_STATEMENT_UNKNOWN,
                  .thread = call->thread->number,
                  .operation = call->active.operation};
    int64_t ns = qp_ticks_to_ns(ticks);
    int64_t self_ns = ns - qp_ticks_to_ns(call->nested_ticks);
    int64_t rows = qp_fetched_row_count(call, result);
    qp_aggregate *sums = qp_aggregate_of(&key);
    qp_aggregate_add_calls(sums, 1, ns, self_ns, rows, ns, ns);
    if (!result && count_error(&key, call)) {
        qp_aggregate_count_error(sums);
    }
    uint64_t from = call->active.start_ticks;
    qp_timeline_add(from, from + (uint64_t)ticks, 1, rows, self_ns);
}

/* If reading the clock is expensive, most rows of a long result are estimated instead of timed. */
static bool row_is_timed(qp_call *call, const qp_pending_rows *pending)
{
    return qp_clock.counter || call->active.operation != QP_NEXT ||
           pending->calls < ROWS_ALWAYS_TIMED || qp_thread_random(call->thread) % ROW_SAMPLING == 0;
}

static void end_fetch(qp_call *call, PyObject *result, int64_t ticks)
{
    qp_execution *e = call->execution;
    qp_pending_rows *p = &e->pending;
    e->in_use = false;
    if (!p->calls) {
        *p = (qp_pending_rows){.operation = call->active.operation, .min_ticks = INT64_MAX};
        qp_execution_mark_pending(e);
    }
    if (row_is_timed(call, p)) {
        p->timed_calls++;
        p->ticks += ticks;
        p->min_ticks = ticks < p->min_ticks ? ticks : p->min_ticks;
        p->max_ticks = ticks > p->max_ticks ? ticks : p->max_ticks;
    }
    p->calls++;
    p->last_ticks = call->active.start_ticks + (uint64_t)ticks;
    p->rows += qp_fetched_row_count(call, result);
    p->nested_ticks += call->nested_ticks;
    if (!result && PyErr_Occurred()) {
        qp_key key = e->meter.key;
        key.operation = call->active.operation;
        p->errors += count_error(&key, call);
    }
    if (ticks >= e->notable_ticks) {
        qp_execution_flush(e, call->thread->tstate, NULL, NULL);
        e->notable_ticks = INT64_MAX; /* the stack is recorded; further time waits for the next
                                       * flush */
    } else {
        e->notable_ticks -= ticks;
    }
}

static QP_COLD void note_execution(const qp_call *call)
{
    if (qp_execution_notes & QP_NOTES_PARAMETERS) {
        qp_execution_store_parameters(call->execution, call->active.sql, call->parameters);
    }
    if (qp_watched_line.code && !call->execution->ignored) {
        qp_line_add_execution(call->thread, &call->execution->meter.key, call->active.start_ticks);
    }
}

/* Takes samples from some executions. */
static QP_COLD void take_samples(const qp_call *call, bool has_failed, int64_t ticks)
{
    int64_t span = qp_outermost_running_span();
    const qp_sampled_execution sampled = {
        .sql = call->active.sql,
        .parameters = call->parameters,
        .work = span ? (uint64_t)span : PyThreadState_GetID(call->thread->tstate),
        .is_sqlite = call->probe->system == QP_SYSTEM_SQLITE,
        .has_failed = has_failed,
        .is_chosen = !call->execution->meter.sampled,
        .is_slow = ticks >= qp_parameters_slow_ticks,
    };
    /* A portal contains the parameters, so they are not known here. */
    if (call->probe->returns != QP_RETURNS_PORTAL) {
        qp_parameters_sample(&call->execution->meter.key, &sampled);
    }
}

/* Returns the object that returns the rows (identity only). A connection's execute returns the
 * cursor; a cursor's execute returns itself, nothing (psycopg2), or a number (PyMySQL). */
static QP_INLINE const void *row_source(const qp_call *call, PyObject *result)
{
    bool is_none =
        call->probe->stands_in && result && (Py_IsNone(result) || PyLong_CheckExact(result));
    return result && !is_none ? result : call->self;
}

/* Stores the number of rows of an execution that returns no cursor. Returns the number of changed
 * rows. */
static QP_COLD int64_t end_without_cursor(const qp_call *call, PyObject *result)
{
    qp_execution *e = call->execution;
    e->rows = qp_result_row_count(call, result);
    qp_execution *superseded = qp_execution_of_cursor_cached(call->thread, call->self);
    if (superseded && !superseded->in_use) {
        superseded->cursor = NULL;
    }
    bool serves =
        call->probe->returns == QP_RETURNS_PORTAL || call->probe->returns == QP_RETURNS_VALUES;
    e->cursor = result && serves ? call->self : NULL;
    call->thread->serving = e->cursor ? e : NULL;
    return qp_statement_get_row(e->meter.key.statement)->changes_rows ? e->rows : 0;
}

/* Ends a call that began an execution. Returns the number of rows that it changed. */
static QP_INLINE int64_t end_execution(qp_call *call, PyObject *result, int64_t ticks)
{
    qp_execution *e = call->execution;
    bool has_cursor = call->probe->returns == QP_RETURNS_CURSOR;
    bool is_text = call->probe->source == QP_SOURCE_TEXT && has_cursor;
    int64_t rows = is_text ? qp_changed_row_count(call, result) : 0;
    if (rows < 0) { /* the program's cursor class ran code that ended the recording */
        qp_execution_abandon(e);
        return 0;
    }
    int64_t notable_ticks = qp_exemplar_sample_ticks(e->meter.key.statement);
    bool notable = ticks >= notable_ticks;
    /* The slowest executions are sampled as well: otherwise only the first execution of a rare
     * statement would count. Slow executions all are, because they may be few. */
    bool sampled = e->meter.sampled || notable || ticks >= qp_parameters_slow_ticks;
    if (sampled && call->probe->source == QP_SOURCE_TEXT && !e->ignored) {
        take_samples(call, result == NULL, ticks);
    }
    e->in_use = false;
    e->cursor = NULL;
    e->ticks = ticks;
    e->nested_ticks = call->nested_ticks;
    e->rows = rows;
    if (!has_cursor) {
        rows = end_without_cursor(call, result);
    }
    qp_writes += rows > 0;
    qp_release_store(&e->stage, QP_STAGE_BEGUN);
    if (is_text) {
        const void *cursor = row_source(call, result);
        qp_execution *superseded = qp_execution_of_cursor_cached(call->thread, cursor);
        if (superseded && !superseded->in_use) {
            superseded->cursor = NULL;
        }
        if (result) {
            e->cursor = cursor;
            call->thread->serving = e;
        }
    }
    /* After the stack is recorded, further time waits for the next flush. */
    e->notable_ticks = notable ? INT64_MAX : notable_ticks - ticks;
    if (qp_execution_notes || qp_watched_line.code) {
        note_execution(call);
    }
    if (notable || e->sampled_stack || !result || e == &call->spare) {
        qp_execution_flush(e, call->thread->tstate, call->active.sql, call->parameters);
    }
    if (e == &call->spare && e->cursor) {
        call->thread->serving = qp_execution_keep_for_fetches(e);
    }
    if (!result && !e->ignored && count_error(&e->meter.key, call)) {
        qp_execution_count_error(e);
        qp_recent_call_mark_failed(e->recent_call, e->started_ticks);
    }
    return rows;
}

/* Adds the call to the event loop's step that it blocked. */
static void add_to_step(const qp_call *call, int64_t ticks)
{
    qp_step *step = call->thread->running_loop->step;
    if (step && call->thread->running_loop->recording == qp_recording) {
        const qp_key *key = call->execution ? &call->execution->meter.key : NULL;
        qp_step_add_driver_call(step, key ? key->statement : QP_STATEMENT_UNKNOWN,
                                key ? key->path : QP_PATH_NONE, call->active.start_ticks, ticks);
    }
}

/* Must be the last use of the file work, because an explanation may end the recording. */
static QP_COLD void end_file_work(qp_call *call, int64_t changed_rows)
{
    const qp_file_work *work = &call->active.work;
    qp_call_wait refused = {0}; /* if SQLite itself refused, there is no wait and no path */
    bool failed = work->failed, is_upgrade = false;
    if (work->waits && failed) {
        refused = work->wait[work->waits - 1];
        is_upgrade = work->would_write;
    }
    qp_call_end_file_work(call, changed_rows);
    if (failed) {
        qp_lock_refusal_explain(refused.path, refused.time.writes, is_upgrade);
    }
}

static QP_INLINE void end_call(qp_call *call, PyObject *result, uint64_t now)
{
    int64_t ticks = qp_elapsed_ticks(call->active.start_ticks, now);
    qp_thread *thread = call->thread;
    qp_call_deactivate(call);
    /* Do not read the operation from the probe: if recording stopped during the call, the probe may
     * belong to another function. */
    bool serves = qp_operation_serves_rows(call->active.operation);
    if (!serves && qp_first_run_is_undecided(call, result)) {
        qp_first_run_decide_statement(call, result);
        if (call->execution) {
            qp_locks_set_key(&call->active, &call->execution->meter.key);
        }
    }
    if (call->outer) {
        call->outer->nested_ticks += ticks;
        call->outer = NULL;
    } else {
        thread->database_ticks += ticks;
        if (thread->running_loop && !call->probe->is_awaited) {
            add_to_step(call, ticks);
        }
    }
    if (call->active.has_more) {
        ticks -= qp_first_run_end(call, result);
    }
    if (call->recording != qp_recording) { /* the recording ended, or the process forked, during
                                            * the call */
        if (call->execution) {
            qp_execution_abandon(call->execution);
        }
        qp_file_work_clear(&call->active.work);
        return;
    }
    int64_t changed_rows = 0;
    if (!serves && qp_workload_on) {
        qp_workload_add_call(call, result, now);
    }
    qp_meter meter = {.sampled = false};
    if (!serves) {
        if (result && !call->execution->ignored) {
            meter = call->execution->meter;
        }
        changed_rows = end_execution(call, result, ticks);
        thread->changed_rows += changed_rows;
    } else if (call->execution) {
        end_fetch(call, result, ticks);
    } else {
        end_unknown_fetch(call, result, ticks);
    }
    uint64_t from_ticks = call->probe->is_awaited ? now : call->active.start_ticks;
    if (call->active.work.any) {
        end_file_work(call, changed_rows);
    }
    if (meter.sampled && call->recording == qp_recording) {
        qp_line_consider_watch(thread, &meter.key, from_ticks);
    }
}

/* Ends a call whose cost is measured. */
static QP_COLD void end_measured(qp_call *call, PyObject *result)
{
    qp_own_part part = qp_own_part_begin();
    part.from_ticks -= (uint64_t)call->active.own_ticks; /* the callbacks ran inside the call */
    call->active.is_measured = false;
    qp_call_end(call, result);
    qp_own_part_end(&qp_own_ends, part, qp_clock_ticks());
}

void qp_call_end(qp_call *call, PyObject *result)
{
    if (call->active.is_measured) {
        end_measured(call, result);
        return;
    }
    uint64_t now = qp_clock_ticks();
    /* qp_periodic_run comes first: a window may end in it, and this call belongs to the next
     * window. */
    if (now >= qp_periodic_due_ticks) {
        qp_periodic_run();
    }
    end_call(call, result, now);
    qp_call_release(call);
}
