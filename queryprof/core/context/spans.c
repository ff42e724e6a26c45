#include "context/spans.h"

#include <string.h>

#include "context/span_sites.h"
#include "loops/loops.h"
#include "loops/step.h"
#include "memory/histogram.h"
#include "memory/numbered_names.h"
#include "memory/region.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/cpu_time.h"
#include "runtime/exception.h"
#include "runtime/thread_local.h"
#include "sharing/shared_region.h"
#include "stacks/submitter.h"
#include "threads/threads.h"
#include "wrappers/coroutine_proxy.h"

enum {
    RUNNING = 1024, /* maximum number of running spans that are measured individually */
    SEARCHED = 64,  /* maximum number of slots searched for a free slot */
    NUMBER_BITS = 16,
    SLOT_BITS = 12
};

/* A running span. */
typedef struct {
    uint64_t serial; /* 0 if free */
    uint16_t name;
    int64_t outer; /* the outer span; 0 if none */
    uint64_t started_ticks;
    qp_thread *thread; /* thread that began the span */
    uint64_t step;     /* step of the thread's event loop in which the span began; 0 if none */
    int64_t cpu_at_ns; /* the thread's CPU time when the span began or continued */
    int64_t cpu_ns;    /* CPU time of the watched coroutine, or of a stopped span; -1: unknown */
    int64_t ns;        /* duration from the start of the span to its stop */
    bool is_watched;
    int64_t executions;
    int64_t database_ns;
    int64_t queue_ns;      /* time in which functions that the span submitted waited for a thread */
    uint64_t queued_ticks; /* end of the last such wait */
    int status;            /* status of a request; 0 if none */
    uint16_t thread_number;
    qp_span_runs *runs; /* owned; NULL if none */
    qp_span_sites sites;
} running_span;

static struct {
    qp_names names;
    running_span *running; /* array of RUNNING spans */
    uint32_t next;         /* slot where the search for a free slot starts */
    uint64_t serial;       /* last serial number; later recordings continue from it */
    uint64_t first_serial; /* first serial number of this recording */
} table;

PyObject *qp_span_variable;

bool qp_spans_start(void)
{
    table.running = qp_allocate(RUNNING, sizeof *table.running);
    table.first_serial = table.serial + 1;
    table.next = 0;
    return table.running && qp_slow_spans_start() &&
           qp_names_start(&table.names, QP_SPAN_ROWS, "") == 0;
}

void qp_spans_stop(void)
{
    qp_free(table.running);
    table.running = NULL;
    qp_slow_spans_stop();
    qp_names_stop(&table.names);
    Py_CLEAR(qp_span_variable);
}

static qp_span_row *span_rows(void)
{
    return qp_first_row(QP_SPAN_ROWS);
}

void qp_spans_clear(void)
{
    for (uint32_t i = 0; i < qp_row_count(QP_SPAN_ROWS); i++) {
        span_rows()[i] = (qp_span_row){.name = span_rows()[i].name};
    }
    qp_rows_clear(QP_REPEAT_ROWS);
    qp_rows_clear(QP_STATUS_ROWS);
    qp_slow_spans_clear();
}

void qp_spans_after_fork(void)
{
    if (table.next) { /* only if a span has begun, so that unused memory is not touched */
        memset(table.running, 0, RUNNING * sizeof *table.running);
    }
    table.next = 0;
    qp_slow_spans_after_fork();
}

void qp_span_set_variable(PyObject *variable)
{
    Py_XSETREF(qp_span_variable, Py_NewRef(variable));
}

/* Returns the running span for a value of the variable; NULL if that span has ended. */
static inline running_span *find_span(int64_t span)
{
    uint32_t slot = (uint32_t)(span >> NUMBER_BITS) & ((1u << SLOT_BITS) - 1);
    if (!slot || slot > RUNNING || !table.running) {
        return NULL;
    }
    running_span *found = &table.running[slot - 1];
    return found->serial == (uint64_t)span >> (NUMBER_BITS + SLOT_BITS) ? found : NULL;
}

static int64_t variable_value(void)
{
    PyObject *value = NULL;
    if (PyContextVar_Get(qp_span_variable, NULL, &value) < 0) {
        qp_exception_clear(); /* no context: no span */
        return 0;
    }
    int64_t span = value && PyLong_CheckExact(value) ? PyLong_AsLongLong(value) : 0;
    Py_XDECREF(value);
    /* Ignore a span of an earlier recording, because its number now refers to another name. */
    return (uint64_t)span >> (NUMBER_BITS + SLOT_BITS) >= table.first_serial ? span : 0;
}

int64_t qp_running_span_find(void)
{
    int64_t span = qp_span_variable ? variable_value() : 0;
    const qp_submitter *submitter = span ? NULL : qp_running_submitter();
    if (submitter && submitter->recording == qp_recording) {
        span = submitter->span;
    }
    return span;
}

int64_t qp_outermost_running_span(void)
{
    int64_t span = qp_running_span();
    for (running_span *inner = find_span(span); inner && inner->outer; inner = find_span(span)) {
        span = inner->outer;
    }
    return span;
}

/* Returns the number of a free slot, from 1. If no slot nearby is free, takes the slot of one of
 * the oldest spans. From then on, the executions of that span count only for its name. */
static uint32_t reserve_slot(void)
{
    uint32_t place = table.next % RUNNING;
    for (uint32_t i = 0; i < SEARCHED && table.running[place].serial; i++) {
        place = (place + 1) % RUNNING;
    }
    table.next = place + 1;
    return place + 1;
}

/* Returns the number of the current step of the thread's event loop, which shows whether another
 * step has begun; 0: no loop runs in the thread; UINT64_MAX: the loop's steps cannot be seen. */
static uint64_t step_number(const qp_thread *thread)
{
    const qp_running_loop *running_loop = thread->running_loop;
    if (!running_loop || running_loop->recording != qp_recording) {
        return 0;
    }
    return running_loop->step && running_loop->loop->has_steps ? running_loop->step->number
                                                               : UINT64_MAX;
}

int64_t qp_span_begin(PyObject *name)
{
    uint16_t number = qp_name_number(&table.names, name);
    qp_thread *thread = number ? qp_thread_here() : NULL;
    if (!number) {
        return 0;
    }
    if (qp_share_awaited) {
        qp_region_share();
    }
    uint64_t serial = ++table.serial;
    uint32_t slot = thread ? reserve_slot() : 0;
    if (slot) {
        running_span *begun = &table.running[slot - 1];
        int64_t outer = qp_running_span();
        begun->serial = serial;
        begun->name = number;
        begun->outer = find_span(outer) ? outer : 0;
        begun->thread = thread;
        begun->step = step_number(thread);
        begun->cpu_ns = begun->executions = begun->database_ns = 0;
        begun->queue_ns = 0;
        begun->queued_ticks = 0;
        begun->is_watched = false;
        begun->status = 0;
        begun->thread_number = thread->number;
        qp_span_runs_release(begun->runs);
        begun->runs = NULL;
        begun->sites.count = 0;
        begun->cpu_at_ns = qp_thread_cpu_ns();
        begun->started_ticks = qp_clock_ticks();
    }
    return (int64_t)(serial << (NUMBER_BITS + SLOT_BITS) | (uint64_t)slot << NUMBER_BITS | number);
}

/* Returns the CPU time of a span that ends here; -1 if unknown, because other work ran in the
 * span's thread in the meantime, or the span continued in another thread. */
static int64_t span_cpu_ns(const running_span *ended)
{
    const qp_thread *thread = qp_thread_here();
    if (ended->is_watched) {
        return ended->cpu_ns;
    }
    bool alone = thread == ended->thread && step_number(ended->thread) == ended->step &&
                 ended->step != UINT64_MAX;
    return alone ? qp_thread_cpu_ns() - ended->cpu_at_ns : -1;
}

void qp_span_stop_clock(int64_t span)
{
    running_span *stopped = find_span(span);
    if (stopped) {
        stopped->ns = qp_ticks_to_ns(qp_elapsed_ticks(stopped->started_ticks, qp_clock_ticks()));
        int64_t cpu_ns = span_cpu_ns(
            stopped); /* includes part of the time to read the CPU clock, which is slow */
        stopped->cpu_ns = cpu_ns < stopped->ns ? cpu_ns : stopped->ns;
    }
}

static QP_COLD void keep_slow_span(const running_span *ended, bool failed)
{
    const qp_ended_span slow = {.span = ended->name,
                                .thread = ended->thread_number,
                                .status = ended->status,
                                .failed = failed,
                                .started_unix_ns = qp_ticks_to_unix_ns(ended->started_ticks),
                                .duration_ns = ended->ns,
                                .database_ns = ended->database_ns,
                                .executions = ended->executions,
                                .queue_ns = ended->queue_ns,
                                .cpu_ns = ended->cpu_ns};
    qp_slow_span_add(&slow, ended->started_ticks, ended->runs);
}

void qp_span_end(int64_t span, bool failed)
{
    running_span *ended = find_span(span);
    if (!ended) {
        return;
    }
    qp_span_row *s = &span_rows()[ended->name];
    s->count++;
    s->errors += failed;
    s->database_ns += ended->database_ns;
    if (ended->cpu_ns >= 0) {
        s->cpu_count++;
        s->cpu_ns += ended->cpu_ns;
    }
    qp_distribution_add(&s->durations, ended->ns);
    qp_distribution_add(&s->queries, ended->executions);
    running_span *outer = find_span(ended->outer);
    qp_span_sites_add_to_sums(&ended->sites, ended->name, outer ? &outer->sites : NULL);
    if (outer) {
        outer->executions += ended->executions;
        outer->database_ns += ended->database_ns;
        outer->queue_ns += ended->queue_ns;
        qp_span_runs_merge(&outer->runs, ended->runs);
    }
    if (qp_is_slow_span(ended->name, ended->ns)) {
        keep_slow_span(ended, failed);
    }
    qp_span_runs_release(ended->runs);
    ended->runs = NULL;
    ended->serial = 0;
}

void qp_span_add_queue_time(int64_t span, uint64_t handed_ticks, uint64_t started_ticks)
{
    running_span *of = find_span(span);
    if (of) {
        uint64_t from = handed_ticks > of->queued_ticks ? handed_ticks : of->queued_ticks;
        of->queue_ns +=
            started_ticks > from ? qp_ticks_to_ns(qp_elapsed_ticks(from, started_ticks)) : 0;
        of->queued_ticks = started_ticks > from ? started_ticks : from;
    }
}

void qp_span_count_status(int64_t span, int status)
{
    running_span *of = find_span(span);
    qp_status_row *rows = qp_first_row(QP_STATUS_ROWS);
    uint32_t count = qp_row_count(QP_STATUS_ROWS), at = 0;
    if (!of) {
        return;
    }
    of->status = status;
    while (at < count && (rows[at].span != of->name || rows[at].status != status)) {
        at++;
    }
    if (at == count) {
        at = qp_rows_add(QP_STATUS_ROWS, 1);
    }
    if (at != UINT32_MAX) {
        rows[at] = (qp_status_row){of->name, status, rows[at].count + 1};
    }
}

void qp_span_database_figures(int64_t span, int64_t *executions, int64_t *database_ns)
{
    *executions = *database_ns = 0;
    if (find_span(span)) {
        *executions = find_span(span)->executions;
        *database_ns = find_span(span)->database_ns;
    }
}

void qp_span_count_execution(qp_execution *e, bool is_query)
{
    running_span *s = find_span(e->span);
    if (!s) {
        return;
    }
    e->run = qp_span_runs_count_execution(&s->runs, &e->meter.key);
    if (is_query) {
        s->executions++;
        qp_span_sites_add_executions(&s->sites, e->meter.key.statement, e->meter.key.path, 1);
    }
}

void qp_span_change_statement(qp_execution *e, uint32_t from)
{
    running_span *s = find_span(e->span);
    const qp_key *key = &e->meter.key;
    if (s && e->run) {
        e->run = qp_span_runs_change_statement(s->runs, e->run, key->statement);
    }
    if (s) {
        qp_span_sites_change_statement(&s->sites, from, key->statement, key->path);
    }
}

void qp_span_add_database(const qp_execution *e, const qp_execution_work *work)
{
    running_span *s = find_span(e->span);
    if (s) {
        s->database_ns += work->self_ns;
        qp_span_runs_add_work(s->runs, e->run, work);
    }
}

/* Adds up the CPU time of a coroutine while it runs. */
typedef struct {
    qp_watcher watcher;
    int64_t span;
} cpu_watcher;

static void on_resume(qp_watcher *self)
{
    running_span *s = find_span(((cpu_watcher *)self)->span);
    if (s) {
        s->cpu_at_ns = qp_thread_cpu_ns();
    }
}

static void on_pause(qp_watcher *self)
{
    running_span *s = find_span(((cpu_watcher *)self)->span);
    if (s) {
        s->cpu_ns += qp_thread_cpu_ns() - s->cpu_at_ns;
    }
}

static void on_end(qp_watcher *Py_UNUSED(self), PyObject *Py_UNUSED(result)) {}

static void free_watcher(qp_watcher *self)
{
    qp_free(self);
}

PyObject *qp_span_coroutine(PyTypeObject *coroutine_proxy_type, int64_t span, PyObject *coroutine)
{
    running_span *s = find_span(span);
    cpu_watcher *w = s && PyCoro_CheckExact(coroutine) ? qp_allocate(1, sizeof *w) : NULL;
    if (!w) {
        return coroutine;
    }
    s->is_watched = true;
    w->watcher = (qp_watcher){on_resume, on_pause, on_end, free_watcher};
    w->span = span;
    return qp_coroutine_proxy(coroutine_proxy_type, coroutine, &w->watcher);
}

bool qp_span_name_is_known(uint16_t number)
{
    return qp_name_is_known(&table.names, number);
}
