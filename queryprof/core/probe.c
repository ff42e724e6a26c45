#include "probe.h"

#include <string.h>

#include "allocation.h"
#include "callpath.h"
#include "clock.h"
#include "compiler.h"
#include "flusher.h"
#include "frames.h"
#include "loops.h"
#include "notes.h"
#include "origin.h"
#include "recorder.h"
#include "samples.h"
#include "spans.h"
#include "statements.h"
#include "steps.h"
#include "timeline.h"

enum {
    PAGE_SAMPLING = 16,    /* 1 execution in so many has its page fetches counted */
    ROWS_ALWAYS_TIMED = 8, /* where reading the clock is dear */
    ROW_SAMPLING = 16,
    COST_ROUNDS = 20,
    COST_CALLS = 50
};

static uint64_t executions; /* begun so far: serial numbers */

/* The call is in progress from here; its own time starts last. */
static inline void enter(qp_call *call, qp_meter *meter)
{
    call->outer = call->thread->active;
    call->thread->active = call;
    call->outer_meter = qp_here.meter;
    qp_here.meter = meter;
    call->nested_ticks = 0;
    call->start_ticks = qp_clock_ticks();
}

/* The execution that a cursor serves, or NULL; the thread's last one is found at once. */
static inline qp_execution *served_by(const qp_thread *thread, const void *cursor)
{
    qp_execution *e = thread->serving;
    return e && e->cursor == cursor ? e : qp_execution_of(cursor);
}

/* An operation that serves rows: it belongs to what its cursor executed. */
static inline bool begin_rows(qp_call *call)
{
    const qp_call *outer = call->thread->active;
    if (outer && outer->self == call->self && outer->operation == QP_FETCHALL) {
        return false; /* one driver function calling another: the outer call counts */
    }
    qp_execution *e = call->self ? served_by(call->thread, call->self) : NULL;
    call->thread->serving = e;
    call->frame = NULL;
    /* In use: the driver will refuse this recursive call. It counts, but not as the cursor's. */
    call->execution = e && !e->in_use ? e : NULL;
    if (!call->execution) {
        enter(call, NULL);
        return true;
    }
    if (e->ignored) {
        return false;
    }
    if (e->pending.calls && e->pending.operation != call->operation) {
        qp_execution_settle(e, NULL, NULL, NULL);
    }
    e->in_use = true;
    enter(call, &e->meter);
    return true;
}

static inline uint32_t statement_of(const qp_call *call)
{
    if (call->probe->source != QP_SOURCE_TEXT) {
        return qp_operation_statements[call->operation];
    }
    return call->probe->stands_in ? qp_statement_of_query(call->argument)
                                  : qp_statement_of_object(call->argument);
}

/* Whether the frame in which another call was made is among those that run: it is not when that
 * call waits in another greenlet. */
static QP_COLD bool runs_inside(PyThreadState *tstate, const void *identity)
{
    enum { DEPTH = 64 };
    bool found = false;
    qp_frame *frame = qp_frame_running(tstate);
    for (int depth = 0; frame && !found && depth < DEPTH; depth++) {
        found = frame == identity;
        frame = found ? frame : qp_frame_outer(frame);
    }
    qp_frame_release(frame);
    return found;
}

/* Whether a call is part of the one in which it is made: one driver function calling another. */
static inline bool is_part_of(const qp_call *call, const qp_call *outer)
{
    return outer->argument == call->argument && outer->operation == call->operation &&
           (outer->frame == call->frame ||
            (call->probe->stands_in && runs_inside(call->thread->tstate, outer->frame)));
}

/* Takes a call out of those in progress; with greenlets it need not be the innermost. */
static inline void leave(const qp_call *call)
{
    qp_call **place = &call->thread->active;
    while (*place && *place != call) {
        place = &(*place)->outer;
    }
    if (*place) {
        *place = call->outer;
    }
}

/* Whether the driver prepares statements for the call that it drops before the call ends. */
static inline bool drops_statements(qp_operation operation)
{
    return operation == QP_EXECUTESCRIPT || operation == QP_COMMIT || operation == QP_ROLLBACK;
}

/* The connection that a call is about (borrowed); NULL: it cannot be told. */
static inline PyObject *connection_of(const qp_call *call)
{
    const qp_probe *probe = call->probe;
    if (!probe->connection_offset) {
        return NULL;
    }
    bool is_cursor = PyObject_TypeCheck(call->self, probe->cursor_type);
    const char *place = (const char *)call->self + probe->connection_offset;
    return is_cursor ? *(PyObject *const *)place : call->self;
}

/* What few calls need: SQLite to tell when statements end, a plan to be asked for. */
static QP_COLD void prepare_more(qp_call *call, qp_execution *e, PyObject *connection, bool ours)
{
    call->has_more = true;
    call->tells_ends = NULL;
    call->plan.tracker = NULL;
    uint32_t statement = e->meter.key.statement;
    if (ours && !qp_plan_known(connection, statement) &&
        qp_plan_ask(&call->plan, connection, statement, call->operation)) {
        e->meter.explanation = &call->plan.explanation;
    }
    if (e->meter.drops) {
        e->meter.counts = qp_counters_tell_ends(connection, true);
        call->tells_ends = e->meter.counts ? connection : NULL;
    }
}

/* Ends it; returns the ticks that it took inside the call. */
static QP_COLD int64_t finish_more(qp_call *call)
{
    if (call->tells_ends) {
        qp_counters_tell_ends(call->tells_ends, false);
    }
    if (!call->plan.tracker) {
        return 0;
    }
    call->execution->meter.explanation = NULL;
    if (call->recording == qp_recording) {
        qp_plan_answer(&call->plan, call->execution->meter.key.statement, call->argument);
    } else {
        qp_release(call->plan.explanation.tree);
    }
    return call->plan.explanation.ticks;
}

/* Tells who else is to know of an execution: its span, its statement's note, its origin. */
static QP_COLD void count_elsewhere(const qp_execution *e, bool is_query)
{
    if (e->ignored) {
        return;
    }
    if (is_query) {
        qp_span_count(e->span, e->meter.key.statement, e->meter.key.path);
        qp_note_statement(e->meter.key.statement);
    }
    if (qp_here.origin) {
        qp_here.origin->calls++;
    }
}

/* An operation that begins an execution: its statement, its call path, its span. */
static bool begin_execution(qp_call *call)
{
    qp_thread *thread = call->thread;
    uint32_t path;
    bool ours = qp_callpath_find(thread->tstate, &path);
    if (call->probe->is_awaited && call->path > QP_PATH_OTHER) {
        path = qp_path_checked(call->path);
    }
    const qp_call *outer = thread->active;
    call->frame = qp_frame_identity(thread->tstate);
    if (outer && is_part_of(call, outer)) {
        return false;
    }
    /* An awaited call may last long, with many others at once. */
    qp_execution *e = call->probe->is_awaited ? NULL : qp_execution_reserve();
    if (!e) {
        e = &call->spare;
    }
    uint32_t random = qp_thread_random(thread);
    int64_t span = qp_span_value();
    call->execution = e;
    e->ignored = !ours;
    e->sampled_stack = (random >> 16) % QP_STACK_SAMPLING == 0;
    e->serial = ++executions;
    e->pending.calls = 0;
    e->meter = (qp_meter){
        .key = {.statement = statement_of(call),
                .path = path,
                .span = qp_span_number_of(span),
                .thread = thread->number,
                .operation = call->operation},
        .counts = call->operation == QP_EXECUTE || call->operation == QP_EXECUTEMANY,
        .drops = call->probe->is_told || drops_statements(call->operation),
        .sampled = random % PAGE_SAMPLING == 0,
    };
    e->span = span;
    if (span || qp_note_variable || qp_here.origin) {
        count_elsewhere(e, call->probe->source == QP_SOURCE_TEXT);
    }
    PyObject *connection = connection_of(call);
    call->has_more = false;
    if (connection && (e->meter.drops || !qp_plan_known(connection, e->meter.key.statement))) {
        prepare_more(call, e, connection, ours);
    }
    enter(call, &e->meter);
    return true;
}

bool qp_call_begin(const qp_probe *probe, PyObject *self, PyObject *argument, PyObject *parameters,
                   qp_call *call)
{
    qp_thread *thread = qp_thread_here();
    if (!thread) {
        return false;
    }
    if (qp_flusher_awaited) {
        qp_flusher_launch();
    }
    call->thread = thread;
    call->probe = probe;
    call->operation = probe->operation;
    call->self = self;
    call->argument = argument;
    call->recording = qp_recording;
    if (probe->source == QP_SOURCE_ROWS) {
        return begin_rows(call);
    }
    if (qp_orphans_waiting) {
        qp_orphans_collect();
    }
    call->parameters = parameters;
    if (probe->source == QP_SOURCE_EXIT) {
        call->operation = argument == Py_None ? QP_COMMIT : QP_ROLLBACK;
        call->argument = NULL;
    }
    return begin_execution(call);
}

static int64_t rows_served(const qp_call *call, PyObject *result)
{
    switch (call->operation) {
    case QP_NEXT:
        return result != NULL;
    case QP_FETCHONE:
        return result && result != Py_None;
    default:
        return result && PyList_CheckExact(result) ? PyList_GET_SIZE(result) : 0;
    }
}

/* The same from a driver in Python, which counts the rows of a query there too. */
static QP_COLD int64_t rows_told(const qp_call *call, PyObject *result)
{
    if (!result || !qp_statement_changes_rows(call->execution->meter.key.statement)) {
        return 0;
    }
    qp_here.muted = true;
    PyObject *cursor = PyObject_HasAttrString(result, "rowcount") ? result : call->self;
    PyObject *told = cursor ? PyObject_GetAttrString(cursor, "rowcount") : NULL;
    long long changed = told && PyLong_Check(told) ? PyLong_AsLongLong(told) : 0;
    PyErr_Clear(); /* none is set before a call that has returned something */
    Py_XDECREF(told);
    qp_here.muted = false;
    return changed > 0 ? changed : 0;
}

/* Rows that the call changed for the program, as its cursor tells them. */
static int64_t rows_changed(const qp_call *call, PyObject *result)
{
    long changed = 0;
    if (call->probe->stands_in) {
        return rows_told(call, result);
    }
    if (result && call->probe->rowcount_offset &&
        PyObject_TypeCheck(result, call->probe->cursor_type)) {
        memcpy(&changed, (const char *)result + call->probe->rowcount_offset, sizeof changed);
    }
    return changed > 0 ? changed : 0;
}

static bool count_error(const qp_key *key)
{
    PyObject *exception = PyErr_Occurred();
    bool is_end = exception == PyExc_StopIteration || exception == PyExc_StopAsyncIteration;
    if (exception && PyType_Check(exception) && !is_end) {
        qp_aggregate_error(key, exception);
        return true;
    }
    return false; /* a StopIteration that was not even raised */
}

/* Rows of a cursor whose execute was not seen. */
static void end_unknown_rows(const qp_call *call, PyObject *result, int64_t ticks)
{
    qp_key key = {.statement = QP_STATEMENT_UNKNOWN,
                  .thread = call->thread->number,
                  .operation = call->operation};
    int64_t ns = qp_clock_ns(ticks);
    int64_t self_ns = ns - qp_clock_ns(call->nested_ticks);
    int64_t rows = rows_served(call, result);
    qp_aggregate *sums = qp_aggregate_of(&key);
    qp_aggregate_add(sums, 1, ns, self_ns, rows, ns, ns);
    if (!result) {
        sums->errors += count_error(&key);
    }
    qp_timeline_add(qp_clock_unix_ns(qp_clock_ticks()), 1, rows, self_ns);
}

/* Where reading the clock is dear, most rows of a long result are not timed but estimated. */
static bool row_is_timed(qp_call *call, const qp_pending_rows *pending)
{
    return qp_clock.counter || call->operation != QP_NEXT || pending->calls < ROWS_ALWAYS_TIMED ||
           qp_thread_random(call->thread) % ROW_SAMPLING == 0;
}

static void end_rows(qp_call *call, PyObject *result, int64_t ticks)
{
    qp_execution *e = call->execution;
    qp_pending_rows *p = &e->pending;
    e->in_use = false;
    if (!p->calls) {
        *p = (qp_pending_rows){.operation = call->operation, .min_ticks = INT64_MAX};
        qp_execution_pends(e);
    }
    if (row_is_timed(call, p)) {
        p->timed_calls++;
        p->ticks += ticks;
        p->min_ticks = ticks < p->min_ticks ? ticks : p->min_ticks;
        p->max_ticks = ticks > p->max_ticks ? ticks : p->max_ticks;
    }
    p->calls++;
    p->last_ticks = call->start_ticks;
    p->rows += rows_served(call, result);
    p->nested_ticks += call->nested_ticks;
    if (!result && PyErr_Occurred()) {
        qp_key key = e->meter.key;
        key.path = qp_path_checked(key.path);
        key.operation = call->operation;
        p->errors += count_error(&key);
    }
    if (ticks >= e->notable_ticks) {
        qp_execution_settle(e, call->thread->tstate, NULL, NULL);
        e->notable_ticks = INT64_MAX; /* its stack is taken; the rest waits for a settling */
    } else {
        e->notable_ticks -= ticks;
    }
}

static void end_execution(qp_call *call, PyObject *result, int64_t ticks)
{
    qp_execution *e = call->execution;
    e->in_use = false;
    e->stage = QP_STAGE_BEGUN;
    e->cursor = NULL;
    e->started_ticks = call->start_ticks;
    e->ticks = ticks;
    e->nested_ticks = call->nested_ticks;
    e->rows = 0;
    if (call->probe->source == QP_SOURCE_TEXT) {
        /* A connection's execute returns the cursor, a cursor's execute itself. */
        const void *cursor = result ? result : call->self;
        qp_execution *superseded = served_by(call->thread, cursor);
        if (superseded && !superseded->in_use) {
            superseded->cursor = NULL;
        }
        if (result) {
            e->cursor = cursor;
            call->thread->serving = e;
        }
        e->rows = rows_changed(call, result);
    }
    int64_t notable_ticks = qp_notable_ticks(e->meter.key.statement);
    bool notable = ticks >= notable_ticks;
    /* Once its stack is taken, the rest waits for a settling. */
    e->notable_ticks = notable ? INT64_MAX : notable_ticks - ticks;
    if (notable || e->sampled_stack || !result || e == &call->spare) {
        qp_execution_settle(e, call->thread->tstate, call->argument, call->parameters);
    }
    if (e == &call->spare && e->cursor) {
        call->thread->serving = qp_execution_keep(e);
    }
    if (!result && !e->ignored) {
        e->began->errors += count_error(&e->meter.key);
    }
}

/* A call that held up an event loop. */
static void note_in_step(const qp_call *call, int64_t ticks)
{
    qp_step *step = call->thread->lane->step;
    if (step && call->thread->lane->recording == qp_recording) {
        const qp_key *key = call->execution ? &call->execution->meter.key : NULL;
        qp_step_database(step, key ? key->statement : QP_STATEMENT_UNKNOWN,
                         key ? key->path : QP_PATH_NONE, ticks);
    }
}

void qp_call_pause(qp_call *call)
{
    leave(call);
    qp_here.meter = call->outer_meter;
}

bool qp_call_goes_on(qp_call *call)
{
    if (call->recording != qp_recording) {
        return false; /* recording ended meanwhile */
    }
    if (qp_here.thread != call->thread) {
        if (call->execution) {
            call->execution->in_use = false;
        }
        return false; /* it goes on in another thread */
    }
    call->outer = call->thread->active;
    call->thread->active = call;
    call->outer_meter = qp_here.meter;
    qp_here.meter = NULL;
    return true;
}

void qp_call_end(qp_call *call, PyObject *result)
{
    int64_t ticks = qp_clock_elapsed(call->start_ticks, qp_clock_ticks());
    qp_thread *thread = call->thread;
    leave(call);
    qp_here.meter = call->outer_meter;
    if (call->outer) {
        call->outer->nested_ticks += ticks;
    }
    if (thread->lane && !call->outer && !call->probe->is_awaited) {
        note_in_step(call, ticks);
    }
    bool serves = call->probe->source == QP_SOURCE_ROWS;
    if (!serves && call->has_more) {
        ticks -= finish_more(call);
    }
    if (call->recording != qp_recording) {
        return; /* recording ended, or the process forked, while the call ran */
    }
    if (!serves) {
        end_execution(call, result, ticks);
    } else if (call->execution) {
        end_rows(call, result, ticks);
    } else {
        end_unknown_rows(call, result, ticks);
    }
}

double qp_probe_cost_ns(void)
{
    static const qp_probe probe = {.operation = QP_EXECUTE, .source = QP_SOURCE_TEXT};
    double least_ns = 1e9;
    qp_call call;
    for (int round = 0; round < COST_ROUNDS; round++) {
        uint64_t from = qp_clock_ticks();
        for (int i = 0; i < COST_CALLS; i++) {
            if (qp_call_begin(&probe, Py_None, NULL, NULL, &call)) {
                qp_call_end(&call, Py_None);
            }
        }
        double ns = (double)qp_clock_ns(qp_clock_elapsed(from, qp_clock_ticks())) / COST_CALLS;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    qp_recorder_forget();
    return least_ns;
}
