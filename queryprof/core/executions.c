#include "executions.h"

#include <string.h>

#include "allocation.h"
#include "callpath.h"
#include "clock.h"
#include "compiler.h"
#include "samples.h"
#include "spans.h"
#include "thread_local.h"
#include "timeline.h"

enum { YOUNG = 16, SETS = 512, WAYS = 8, PARAMETERS_SHOWN = 20 };

static struct {
    qp_execution young[YOUNG];
    int next;                     /* the first of them that has not been reserved this turn */
    const void *(*cursors)[WAYS]; /* of the old ones; one cache line a set */
    qp_execution (*executions)[WAYS];
    bool unsettled[SETS]; /* where something may be pending among the old ones */
    bool keep_parameters;
} table;

bool qp_executions_start(void)
{
    if (!table.cursors) {
        table.cursors = qp_allocate(SETS, sizeof *table.cursors);
    }
    if (!table.executions) {
        table.executions = qp_allocate(SETS, sizeof *table.executions);
    }
    if (!table.cursors || !table.executions) {
        return false;
    }
    qp_executions_forget();
    return true;
}

static uint32_t set_of(const void *cursor)
{
    return (uint32_t)((uint64_t)(uintptr_t)cursor * 0x9E3779B97F4A7C15u >> 48) & (SETS - 1);
}

static qp_execution *find_old(const void *cursor)
{
    uint32_t set = set_of(cursor);
    for (int way = 0; way < WAYS; way++) {
        if (table.cursors[set][way] == cursor) {
            qp_execution *old = &table.executions[set][way];
            return old->cursor == cursor ? old : NULL; /* else superseded */
        }
    }
    return NULL;
}

qp_execution *qp_execution_of(const void *cursor)
{
    for (int i = 0; i < YOUNG; i++) { /* at most one: the others were superseded */
        if (table.young[i].cursor == cursor) {
            return &table.young[i];
        }
    }
    return find_old(cursor);
}

/* Where in its set a cursor's execution goes: its own place, a free one, or that of the oldest;
 * -1: calls in progress hold them. */
static int place_in_set(const void *const *cursors, const qp_execution *executions,
                        const void *cursor)
{
    int place = -1;
    for (int way = 0; way < WAYS; way++) {
        if (cursors[way] == cursor) {
            return executions[way].in_use ? -1 : way;
        }
    }
    for (int way = 0; way < WAYS; way++) {
        if (!cursors[way]) {
            return way;
        }
        if (!executions[way].in_use &&
            (place < 0 || executions[way].serial < executions[place].serial)) {
            place = way;
        }
    }
    return place;
}

void qp_execution_pends(const qp_execution *e)
{
    table.unsettled[set_of(e->cursor)] = true;
}

qp_execution *qp_execution_keep(const qp_execution *e)
{
    uint32_t set = set_of(e->cursor);
    int way =
        place_in_set((const void *const *)table.cursors[set], table.executions[set], e->cursor);
    if (way < 0) {
        return NULL;
    }
    if (table.cursors[set][way]) {
        qp_execution_settle(&table.executions[set][way], NULL, NULL, NULL);
    }
    table.cursors[set][way] = e->cursor;
    table.executions[set][way] = *e;
    return &table.executions[set][way];
}

/* Settles a young execution and makes its place free. */
static void retire(qp_execution *e)
{
    qp_execution_settle(e, NULL, NULL, NULL);
    if (e->cursor) {
        qp_execution_keep(e);
        e->cursor = NULL;
    }
    e->stage = QP_STAGE_FREE;
}

/* Makes all places free that calls in progress do not hold. */
static QP_COLD void turn(void)
{
    for (int i = 0; i < YOUNG; i++) {
        if (!table.young[i].in_use) {
            retire(&table.young[i]);
        }
    }
    table.next = 0;
}

qp_execution *qp_execution_reserve(void)
{
    for (int turns = 0; turns < 2; turns++) {
        while (table.next < YOUNG) {
            qp_execution *e = &table.young[table.next++];
            if (e->in_use) {
                continue;
            }
            if (e->stage != QP_STAGE_FREE) {
                retire(e); /* its call was in progress at the last turn */
            }
            e->in_use = true;
            e->stage = QP_STAGE_BEGINNING;
            return e;
        }
        turn();
    }
    return NULL;
}

static bool is_plain(PyObject *value)
{
    return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
           PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value);
}

/* A new str that shows one bound value; only built-in types are asked for their repr. */
static PyObject *show_value(PyObject *value)
{
    return is_plain(value) ? PyObject_Repr(value)
                           : PyUnicode_FromFormat("<%s>", Py_TYPE(value)->tp_name);
}

/* A new str that shows the parameters of an execution, or NULL; never leaves an exception. */
static PyObject *show_parameters(PyObject *parameters)
{
    PyObject *shown = PyList_New(0);
    Py_ssize_t position = 0, index = 0;
    PyObject *key = NULL, *value = NULL;
    bool pairs = parameters && PyDict_CheckExact(parameters);
    bool sequence = parameters && (PyTuple_CheckExact(parameters) || PyList_CheckExact(parameters));
    while (shown && index < PARAMETERS_SHOWN) {
        if (pairs ? !PyDict_Next(parameters, &position, &key, &value)
                  : !sequence || index >= PySequence_Fast_GET_SIZE(parameters)) {
            break;
        }
        PyObject *part = show_value(pairs ? value : PySequence_Fast_GET_ITEM(parameters, index));
        if (part && pairs && PyUnicode_CheckExact(key)) {
            Py_SETREF(part, PyUnicode_FromFormat("%U=%U", key, part));
        }
        if (!part || PyList_Append(shown, part) < 0) {
            Py_CLEAR(shown);
        }
        Py_XDECREF(part);
        index++;
    }
    PyObject *comma = PyUnicode_FromString(", ");
    PyObject *text = shown && comma ? PyUnicode_Join(comma, shown) : NULL;
    Py_XDECREF(comma);
    Py_XDECREF(shown);
    return text;
}

static void keep_exemplar(const qp_execution *e, PyObject *sql, PyObject *parameters)
{
    PyObject *kept_sql = NULL, *kept_parameters = NULL;
    if (table.keep_parameters && sql && PyUnicode_Check(sql)) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        bool was_muted = qp_here.muted;
        qp_here.muted = true; /* a garbage collection here may run the program's code */
        kept_sql = Py_NewRef(sql);
        kept_parameters = show_parameters(parameters);
        qp_here.muted = was_muted;
        PyErr_Restore(type, value, traceback);
    }
    qp_exemplar_keep(&e->meter.key, e->serial, qp_clock_unix_ns(e->started_ticks), e->duration_ns,
                     e->fetched, e->stack, kept_sql, kept_parameters);
}

/* Slow executions count once, 1 in 64 of the others 64 times. */
static void sample_stack(qp_execution *e)
{
    int64_t weight = e->duration_ns >= QP_SLOW_NS ? 1 : e->sampled_stack ? QP_STACK_SAMPLING : 0;
    if (weight && e->stack) {
        qp_stack_sample_add(e->meter.key.statement, e->stack, weight - e->stack_weight,
                            weight * e->duration_ns - e->stack_ns);
        e->stack_weight = weight;
        e->stack_ns = weight * e->duration_ns;
    }
}

/* What goes on the timeline: one look at it for all that is settled together. */
typedef struct {
    uint64_t ticks;
    int64_t calls;
    int64_t rows;
    int64_t self_ns;
} plot;

/* The aggregates may have been emptied since the execution was last settled. */
static void refresh(qp_execution *e)
{
    e->generation = qp_aggregates_generation();
    e->began = qp_aggregate_of(&e->meter.key);
}

static int64_t self_of(int64_t ns, int64_t nested_ticks)
{
    int64_t self_ns = ns - (nested_ticks ? qp_clock_ns(nested_ticks) : 0);
    return self_ns > 0 ? self_ns : 0;
}

static void settle_beginning(qp_execution *e, plot *plotted)
{
    int64_t ns = qp_clock_ns(e->ticks);
    int64_t self_ns = self_of(ns, e->nested_ticks);
    qp_aggregate_add(e->began, 1, ns, self_ns, e->rows, ns, ns);
    e->stage = QP_STAGE_SETTLED;
    e->duration_ns = ns;
    e->settled_ns = -1;
    e->fetched = e->rows;
    e->stack = 0;
    e->stack_weight = e->stack_ns = 0;
    *plotted = (plot){e->started_ticks, 1, e->rows, self_ns};
}

static void settle_rows(qp_execution *e, plot *plotted)
{
    qp_pending_rows *p = &e->pending;
    qp_aggregate *sums = qp_aggregate_serving(e->began, p->operation);
    int64_t total_ns = qp_clock_ns(p->ticks);
    if (p->timed_calls && p->timed_calls < p->calls) {
        total_ns = (int64_t)((double)total_ns * (double)p->calls / (double)p->timed_calls);
    }
    int64_t self_ns = self_of(total_ns, p->nested_ticks);
    qp_aggregate_add(sums, p->calls, total_ns, self_ns, p->rows, qp_clock_ns(p->min_ticks),
                     qp_clock_ns(p->max_ticks));
    sums->errors += p->errors;
    e->duration_ns += total_ns;
    e->fetched += p->rows;
    *plotted = (plot){p->last_ticks, plotted->calls + p->calls, plotted->rows + p->rows,
                      plotted->self_ns + self_ns};
    p->calls = 0;
}

/* Keeps an execution as exemplar and as stack sample, where it deserves that. */
static void keep_samples(qp_execution *e, PyThreadState *tstate, PyObject *sql,
                         PyObject *parameters)
{
    bool exemplar = e->duration_ns > qp_exemplar_floor_ns(e->meter.key.statement);
    if (!exemplar && !e->sampled_stack && e->duration_ns < QP_SLOW_NS) {
        return;
    }
    if (tstate && !e->stack) {
        e->stack = qp_stack_find(tstate);
    }
    if (exemplar) {
        keep_exemplar(e, sql, parameters);
    }
    sample_stack(e);
}

void qp_execution_settle(qp_execution *e, PyThreadState *tstate, PyObject *sql,
                         PyObject *parameters)
{
    bool settled = e->stage == QP_STAGE_SETTLED && !e->pending.calls;
    if (e->ignored || settled || e->stage < QP_STAGE_BEGUN) {
        return;
    }
    plot plotted = {0};
    if (e->stage == QP_STAGE_BEGUN || e->generation != qp_aggregates_generation()) {
        refresh(e);
    }
    if (e->stage == QP_STAGE_BEGUN) {
        settle_beginning(e, &plotted);
    }
    if (e->pending.calls) {
        settle_rows(e, &plotted);
    }
    qp_timeline_add(qp_clock_unix_ns(plotted.ticks), plotted.calls, plotted.rows, plotted.self_ns);
    if (e->span) {
        qp_span_add_database(e->span, plotted.self_ns);
    }
    qp_aggregate_move(e->began, e->settled_ns, e->duration_ns);
    e->settled_ns = e->duration_ns;
    keep_samples(e, tstate, sql, parameters);
}

void qp_executions_settle(void)
{
    for (int i = 0; i < YOUNG; i++) {
        qp_execution_settle(&table.young[i], NULL, NULL, NULL);
    }
    for (uint32_t set = 0; set < SETS; set++) {
        for (int way = 0; table.unsettled[set] && way < WAYS; way++) {
            if (table.cursors[set][way]) {
                qp_execution_settle(&table.executions[set][way], NULL, NULL, NULL);
            }
        }
        table.unsettled[set] = false;
    }
}

void qp_execution_abandon(qp_execution *e)
{
    e->cursor = NULL;
    e->pending.calls = 0;
    e->stage = QP_STAGE_FREE;
    e->in_use = false;
}

static void forget(bool in_use_too)
{
    for (int i = 0; i < YOUNG; i++) {
        if (in_use_too || !table.young[i].in_use) {
            table.young[i] = (qp_execution){0};
        }
    }
    memset(table.unsettled, 0, sizeof table.unsettled);
    table.next = 0;
    for (uint32_t set = 0; set < SETS; set++) {
        for (int way = 0; way < WAYS; way++) {
            if (table.cursors[set][way] && (in_use_too || !table.executions[set][way].in_use)) {
                table.cursors[set][way] = NULL;
                table.executions[set][way] = (qp_execution){0};
            }
        }
    }
}

void qp_executions_forget(void)
{
    forget(false);
}

void qp_executions_after_fork(void)
{
    forget(true);
}

void qp_executions_keep_parameters(bool keep)
{
    table.keep_parameters = keep;
}
