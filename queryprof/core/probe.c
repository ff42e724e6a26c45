#include "probe.h"

#include <string.h>

#include "callpath.h"
#include "clock.h"
#include "flusher.h"
#include "samples.h"
#include "statements.h"
#include "thread_local.h"
#include "timeline.h"

enum {
    PAGE_SAMPLING = 16,    /* 1 execution in so many has its page fetches counted */
    ROWS_ALWAYS_TIMED = 8, /* where reading the clock is dear */
    ROW_SAMPLING = 16,
    COST_ROUNDS = 20,
    COST_CALLS = 50
};

static struct {
    uint32_t recordings;
    uint64_t executions; /* begun so far: serial numbers */
    uint32_t fixed_statements[QP_OPERATIONS];
} state;

uint32_t qp_recording;

static inline qp_thread *this_thread(void)
{
    if (!qp_recording || qp_here.muted) {
        return NULL;
    }
    qp_thread *thread = qp_here.thread;
    if (thread && thread->recording == qp_recording && thread->tstate == PyThreadState_Get()) {
        return thread;
    }
    return qp_thread_record(qp_recording);
}

/* The call is in progress from here; its own time starts last. */
static inline void enter(qp_call *call, qp_meter *meter)
{
    call->outer = call->thread->active;
    call->thread->active = call;
    call->outer_meter = qp_here.meter;
    qp_here.meter = meter;
    call->nested_ns = 0;
    call->start_ticks = qp_clock_ticks();
}

/* An operation that serves rows: it belongs to what its cursor executed. */
static bool begin_rows(qp_call *call)
{
    qp_execution *e = call->thread->serving;
    if (!e || e->cursor != call->self) {
        e = qp_execution_of(call->self);
        call->thread->serving = e;
    }
    call->frame = NULL;
    call->argument = NULL;
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

static uint32_t statement_of(const qp_call *call)
{
    return qp_operations[call->operation].source == QP_SOURCE_TEXT
               ? qp_statement_of_object(call->argument)
               : state.fixed_statements[call->operation];
}

/* An operation that begins an execution: its statement, its call path, its span. */
static bool begin_execution(qp_call *call)
{
    qp_thread *thread = call->thread;
    qp_key *key = &call->meter.key;
    call->ignored = !qp_callpath_find(thread->tstate, &key->path, &call->frame);
    const qp_call *outer = thread->active;
    if (outer && outer->frame == call->frame && outer->argument == call->argument &&
        outer->operation == call->operation) {
        return false; /* one driver function calling another: the outer call counts */
    }
    uint32_t random = qp_thread_random(thread);
    key->statement = statement_of(call);
    key->span = qp_span_running();
    key->thread = thread->number;
    key->operation = call->operation;
    call->meter.execution = ++state.executions;
    call->meter.sampled = random % PAGE_SAMPLING == 0;
    call->meter.many = call->operation == QP_EXECUTEMANY;
    call->meter.touched = false;
    call->meter.started = call->meter.ended = 0;
    call->meter.tracker = NULL;
    call->sampled_stack = (random >> 16) % QP_STACK_SAMPLING == 0;
    if (!call->ignored) {
        call->sums = qp_aggregate_of(key);
        call->generation = qp_aggregates_generation();
    }
    enter(call, &call->meter);
    return true;
}

bool qp_call_begin(const qp_probe *probe, PyObject *self, PyObject *argument, PyObject *parameters,
                   qp_call *call)
{
    qp_thread *thread = this_thread();
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
    call->recording = qp_recording;
    if (qp_operations[probe->operation].source == QP_SOURCE_ROWS) {
        return begin_rows(call);
    }
    if (qp_orphans_waiting) {
        qp_orphans_collect();
    }
    call->argument = argument;
    call->parameters = parameters;
    if (probe->operation == QP_EXIT) {
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

/* Rows that the call changed for the program, as its cursor tells them. */
static int64_t rows_changed(const qp_call *call, PyObject *result)
{
    long changed = 0;
    if (result && call->probe->rowcount_offset &&
        PyObject_TypeCheck(result, call->probe->cursor_type)) {
        memcpy(&changed, (const char *)result + call->probe->rowcount_offset, sizeof changed);
    }
    return changed > 0 ? changed : 0;
}

static bool count_error(const qp_key *key)
{
    PyObject *exception = PyErr_Occurred();
    if (exception && PyType_Check(exception)) {
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
    int64_t rows = rows_served(call, result);
    qp_aggregate *sums = qp_aggregate_of(&key);
    qp_aggregate_add(sums, 1, ns, ns - call->nested_ns, rows, ns, ns);
    if (!result) {
        sums->errors += count_error(&key);
    }
    qp_timeline_add(qp_clock_unix_ns(qp_clock_ticks()), 1, rows, ns - call->nested_ns);
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
    p->nested_ns += call->nested_ns;
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

/* The execution that a call has begun, where its cursor's rows will find it. */
static void place_execution(qp_call *call, qp_execution *e, int64_t ns, int64_t rows)
{
    e->serial = call->meter.execution;
    e->in_use = false;
    e->ignored = call->ignored;
    e->sampled_stack = call->sampled_stack;
    e->generation = call->generation;
    e->began = call->sums;
    e->meter.execution = call->meter.execution;
    e->meter.key = call->meter.key;
    e->meter.sampled = call->meter.sampled;
    e->meter.many = e->meter.touched = false;
    e->meter.started = call->meter.started;
    e->meter.tracker = NULL;
    e->pending.calls = 0;
    e->started_ticks = call->start_ticks;
    e->duration_ns = ns;
    e->settled_ns = -1;
    e->rows = rows;
    e->plotted_ns = call->self_ns;
    e->plotted_rows = rows;
    e->stack = 0;
    e->stack_weight = e->stack_ns = 0;
    int64_t floor_ns = qp_exemplar_floor_ns(call->meter.key.statement);
    int64_t notable_ns = floor_ns < QP_SLOW_NS ? floor_ns : QP_SLOW_NS;
    bool notable = ns >= notable_ns;
    e->notable_ticks = notable ? INT64_MAX : qp_clock_ticks_of(notable_ns - ns);
    if (!call->ignored && (e->sampled_stack || notable)) {
        qp_execution_settle(e, call->thread->tstate, call->argument, call->parameters);
    }
}

static void end_execution(qp_call *call, PyObject *result, int64_t ticks)
{
    int64_t ns = qp_clock_ns(ticks);
    bool has_cursor = qp_operations[call->operation].source == QP_SOURCE_TEXT;
    int64_t rows = has_cursor ? rows_changed(call, result) : 0;
    if (!call->ignored) {
        if (call->generation != qp_aggregates_generation()) {
            call->meter.key.path = qp_path_checked(call->meter.key.path);
            call->sums = qp_aggregate_of(&call->meter.key);
            call->generation = qp_aggregates_generation();
        }
        int64_t self_ns = ns > call->nested_ns ? ns - call->nested_ns : 0;
        qp_aggregate_add(call->sums, 1, ns, self_ns, rows, ns, ns);
        if (!result) {
            call->sums->errors += count_error(&call->meter.key);
        }
        if (call->meter.touched) {
            qp_aggregate_count(call->sums, &call->meter.counters);
        }
        call->self_ns = self_ns;
    }
    if (has_cursor && result) {
        /* A connection's execute returns the cursor, a cursor's execute itself. */
        qp_execution *place = qp_execution_place(result);
        if (place) {
            place->cursor = result;
            place_execution(call, place, ns, rows);
            return;
        }
    } else if (has_cursor) {
        qp_execution_drop(call->self);
    }
    qp_execution whole; /* no rows will follow, or nobody will know whose they are */
    place_execution(call, &whole, ns, rows);
    qp_execution_settle(&whole, call->thread->tstate, call->argument, call->parameters);
}

void qp_call_end(qp_call *call, PyObject *result)
{
    int64_t ticks = qp_clock_elapsed(call->start_ticks, qp_clock_ticks());
    qp_thread *thread = call->thread;
    thread->active = call->outer;
    qp_here.meter = call->outer_meter;
    if (call->outer) {
        call->outer->nested_ns += qp_clock_ns(ticks);
    }
    bool serves = qp_operations[call->operation].source == QP_SOURCE_ROWS;
    if (!serves && call->meter.tracker) {
        qp_meter_finish(&call->meter);
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

int qp_recorder_start(void)
{
    qp_clock_start();
    bool started = qp_statements_start() && qp_callpath_start() && qp_aggregates_start() &&
                   qp_executions_start() && qp_samples_start() &&
                   qp_threads_start(PyInterpreterState_Get()) == 0;
    if (!started) {
        qp_recorder_stop();
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        return -1;
    }
    for (int i = 0; i < QP_OPERATIONS; i++) {
        const char *name = qp_operations[i].statement;
        state.fixed_statements[i] = name ? qp_statement_of_name(name) : QP_STATEMENT_UNKNOWN;
    }
    qp_timeline_start(qp_clock_unix_ns(qp_clock_ticks()));
    qp_recording = ++state.recordings;
    return 0;
}

void qp_recorder_stop(void)
{
    qp_recording = 0;
    qp_threads_stop();
    qp_samples_stop();
    qp_aggregates_stop();
    qp_callpath_stop();
    qp_statements_stop();
}

bool qp_recorder_is_on(void)
{
    return qp_recording != 0;
}

static void forget_sums(void)
{
    qp_samples_forget();
    qp_executions_forget_stacks();
    qp_stacks_forget();
    qp_aggregates_forget();
}

void qp_recorder_after_fork(void)
{
    qp_counters_after_fork();
    qp_executions_forget();
    forget_sums();
    qp_timeline_start(qp_clock_unix_ns(qp_clock_ticks()));
    qp_recording = ++state.recordings;
}

void qp_recorder_settle(void)
{
    qp_orphans_collect();
    qp_executions_settle();
    qp_clock_calibrate();
}

bool qp_recorder_end_interval(void)
{
    bool full = qp_aggregates_nearly_full() || qp_callpath_nearly_full();
    qp_aggregates_rewind();
    if ((full && qp_aggregates_changed()) || qp_samples_pending()) {
        return false;
    }
    qp_executions_forget_stacks();
    qp_stacks_forget();
    if (full) {
        qp_aggregates_forget();
        qp_callpath_forget();
    }
    return true;
}

double qp_probe_cost_ns(void)
{
    static const qp_probe probe = {.operation = QP_EXECUTE};
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
    qp_executions_forget();
    forget_sums();
    qp_timeline_start(qp_clock_unix_ns(qp_clock_ticks()));
    return least_ns;
}
