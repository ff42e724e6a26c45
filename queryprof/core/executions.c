#include "executions.h"

#include <string.h>

#include "allocation.h"
#include "callpath.h"
#include "clock.h"
#include "samples.h"
#include "timeline.h"

enum { SETS = 512, WAYS = 8, PARAMETERS_SHOWN = 20 };

static struct {
    const void *(*cursors)[WAYS]; /* one cache line a set */
    qp_execution (*executions)[WAYS];
    uint32_t stack_epoch;
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

qp_execution *qp_execution_of(const void *cursor)
{
    uint32_t set = set_of(cursor);
    for (int way = 0; way < WAYS; way++) {
        if (table.cursors[set][way] == cursor) {
            return &table.executions[set][way];
        }
    }
    return NULL;
}

qp_execution *qp_execution_place(const void *cursor)
{
    uint32_t set = set_of(cursor);
    qp_execution *executions = table.executions[set];
    int place = -1;
    for (int way = 0; way < WAYS; way++) {
        const void *there = table.cursors[set][way];
        if (there == cursor) {
            place = way;
            break;
        }
        if (there && executions[way].in_use) {
            continue;
        }
        bool older = place < 0 || (table.cursors[set][place] &&
                                   (!there || executions[way].serial < executions[place].serial));
        if (older) {
            place = way;
        }
    }
    if (place < 0 || (table.cursors[set][place] && executions[place].in_use)) {
        return NULL;
    }
    if (table.cursors[set][place]) {
        qp_execution_settle(&executions[place], NULL, NULL, NULL);
    }
    table.cursors[set][place] = cursor;
    return &executions[place];
}

void qp_execution_drop(const void *cursor)
{
    qp_execution *execution = qp_execution_of(cursor);
    if (execution && !execution->in_use) {
        qp_execution_settle(execution, NULL, NULL, NULL);
        uint32_t set = set_of(cursor);
        table.cursors[set][execution - table.executions[set]] = NULL;
        execution->cursor = NULL;
    }
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
        kept_sql = Py_NewRef(sql);
        kept_parameters = show_parameters(parameters);
        PyErr_Restore(type, value, traceback);
    }
    uint32_t stack = e->stack_epoch == table.stack_epoch ? e->stack : QP_STACK_NONE;
    qp_exemplar_keep(&e->meter.key, e->serial, qp_clock_unix_ns(e->started_ticks), e->duration_ns,
                     e->rows, stack, kept_sql, kept_parameters);
}

/* Slow executions count once, 1 in 64 of the others 64 times. */
static void sample_stack(qp_execution *e)
{
    int64_t weight = e->duration_ns >= QP_SLOW_NS ? 1 : e->sampled_stack ? QP_STACK_SAMPLING : 0;
    if (weight && e->stack && e->stack_epoch == table.stack_epoch) {
        qp_stack_sample_add(e->meter.key.statement, e->stack, weight - e->stack_weight,
                            weight * e->duration_ns - e->stack_ns);
        e->stack_weight = weight;
        e->stack_ns = weight * e->duration_ns;
    }
}

/* The aggregates may have been emptied since the execution began. */
static void refresh(qp_execution *e)
{
    if (e->generation != qp_aggregates_generation()) {
        e->generation = qp_aggregates_generation();
        e->meter.key.path = qp_path_checked(e->meter.key.path);
        e->began = qp_aggregate_of(&e->meter.key);
    }
}

static void settle_rows(qp_execution *e)
{
    qp_pending_rows *p = &e->pending;
    qp_aggregate *sums = qp_aggregate_serving(e->began, p->operation);
    int64_t total_ns = qp_clock_ns(p->ticks);
    if (p->timed_calls && p->timed_calls < p->calls) {
        total_ns = (int64_t)((double)total_ns * (double)p->calls / (double)p->timed_calls);
    }
    int64_t self_ns = total_ns > p->nested_ns ? total_ns - p->nested_ns : 0;
    qp_aggregate_add(sums, p->calls, total_ns, self_ns, p->rows, qp_clock_ns(p->min_ticks),
                     qp_clock_ns(p->max_ticks));
    sums->errors += p->errors;
    e->duration_ns += total_ns;
    e->rows += p->rows;
    /* What began the execution goes along: one look at the timeline for both. */
    bool first = e->plotted_ns >= 0;
    qp_timeline_add(qp_clock_unix_ns(p->last_ticks), p->calls + first,
                    p->rows + (first ? e->plotted_rows : 0), self_ns + (first ? e->plotted_ns : 0));
    e->plotted_ns = -1;
    p->calls = 0;
}

void qp_execution_settle(qp_execution *e, PyThreadState *tstate, PyObject *sql,
                         PyObject *parameters)
{
    if (e->ignored || (!e->pending.calls && e->settled_ns == e->duration_ns)) {
        return;
    }
    refresh(e);
    if (e->pending.calls) {
        settle_rows(e);
    } else if (e->plotted_ns >= 0) {
        qp_timeline_add(qp_clock_unix_ns(e->started_ticks), 1, e->plotted_rows, e->plotted_ns);
        e->plotted_ns = -1;
    }
    if (e->meter.touched && !e->in_use) {
        qp_aggregate_count(e->began, &e->meter.counters);
        e->meter.touched = false;
    }
    if (e->settled_ns != e->duration_ns) {
        qp_aggregate_move(e->began, e->settled_ns, e->duration_ns);
        e->settled_ns = e->duration_ns;
    }
    bool exemplar = e->duration_ns > qp_exemplar_floor_ns(e->meter.key.statement);
    if (!exemplar && !e->sampled_stack && e->duration_ns < QP_SLOW_NS) {
        return;
    }
    if (tstate && !e->stack) {
        e->stack = qp_stack_find(tstate);
        e->stack_epoch = table.stack_epoch;
    }
    if (exemplar) {
        keep_exemplar(e, sql, parameters);
    }
    sample_stack(e);
}

void qp_executions_settle(void)
{
    for (uint32_t set = 0; set < SETS; set++) {
        for (int way = 0; way < WAYS; way++) {
            if (table.cursors[set][way]) {
                qp_execution_settle(&table.executions[set][way], NULL, NULL, NULL);
            }
        }
    }
}

void qp_executions_forget(void)
{
    for (uint32_t set = 0; set < SETS; set++) {
        for (int way = 0; way < WAYS; way++) {
            if (table.cursors[set][way]) {
                table.cursors[set][way] = NULL;
                table.executions[set][way].cursor = NULL;
                table.executions[set][way].in_use = false;
            }
        }
    }
}

void qp_executions_forget_stacks(void)
{
    table.stack_epoch++;
}

void qp_executions_keep_parameters(bool keep)
{
    table.keep_parameters = keep;
}
