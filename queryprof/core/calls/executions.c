#include "calls/executions.h"

#include <string.h>

#include "calls/execution_samples.h"
#include "calls/workload.h"
#include "context/spans.h"
#include "memory/region.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/index.h"
#include "sums/recent_calls.h"
#include "sums/timeline.h"
#include "threads/threads.h"

enum { SETS = 512, WAYS = 8 };

static struct {
    qp_execution *young;          /* QP_YOUNG rows, the first of the table */
    int next;                     /* number of the first row not reserved since the last flush */
    const void *(*cursors)[WAYS]; /* cursors of the old executions; each set fills one cache line */
    uint16_t (*rows)[WAYS];       /* row numbers of the old executions; 0: no row yet */
    bool unsettled[SETS];         /* whether a set's old executions may have unflushed rows */
} table;

static qp_execution *execution_rows(void)
{
    return qp_first_row(QP_CALL_ROWS);
}

bool qp_executions_start(void)
{
    if (!table.cursors) {
        table.cursors = qp_allocate(SETS, sizeof *table.cursors);
    }
    if (!table.rows) {
        table.rows = qp_allocate(SETS, sizeof *table.rows);
    }
    bool has_young = qp_row_count(QP_CALL_ROWS) || qp_rows_add(QP_CALL_ROWS, QP_YOUNG) == 0;
    if (!table.cursors || !table.rows || !has_young) {
        return false;
    }
    table.young = execution_rows();
    qp_executions_clear();
    return true;
}

static uint32_t cursor_set(const void *cursor)
{
    return (uint32_t)((uint64_t)(uintptr_t)cursor * QP_GOLDEN_RATIO >> 48) & (SETS - 1);
}

static qp_execution *find_old_execution(const void *cursor)
{
    uint32_t set = cursor_set(cursor);
    for (int way = 0; way < WAYS; way++) {
        if (table.cursors[set][way] == cursor) {
            qp_execution *old = &execution_rows()[table.rows[set][way]];
            return old->cursor == cursor ? old : NULL; /* or a newer execution has the cursor */
        }
    }
    return NULL;
}

qp_execution *qp_execution_of_cursor(const void *cursor)
{
    /* A cursor has at most one young execution, because newer executions replace older ones. */
    for (int i = 0; i < QP_YOUNG; i++) {
        if (table.young[i].cursor == cursor) {
            return &table.young[i];
        }
    }
    return find_old_execution(cursor);
}

void qp_execution_forget_cursor(const void *cursor)
{
    qp_execution *e = table.cursors ? qp_execution_of_cursor(cursor) : NULL;
    if (e && !e->in_use) {
        e->cursor = NULL;
    }
}

/* Returns whether all rows of an execution were fetched: one of its last calls returned no row, or
 * a call fetched all rows. Flushing keeps these facts in `pending`, so calls pay nothing for
 * them. */
static bool is_fully_fetched(const qp_execution *e)
{
    const qp_pending_rows *p = &e->pending;
    bool has_fetched = p->calls || e->plotted_ticks > e->started_ticks + (uint64_t)e->ticks;
    return has_fetched && (p->timed_calls > p->rows || qp_operation_serves_all(p->operation));
}

/* Returns whether a full set drops `a` before `b`. */
static bool is_replaced_before(const qp_execution *a, const qp_execution *b)
{
    bool is_over = is_fully_fetched(a);
    bool is_earlier = qp_execution_last_use(a) < qp_execution_last_use(b);
    return is_over != is_fully_fetched(b) ? is_over : is_earlier;
}

/* Returns the way in the set for a cursor's execution: the cursor's present way, a free way, or the
 * way to replace first. -1 if calls in progress use all ways. */
static int way_in_set(uint32_t set, const void *cursor)
{
    const void *const *cursors = table.cursors[set];
    const qp_execution *first = NULL;
    int place = -1;
    for (int way = 0; way < WAYS; way++) {
        if (cursors[way] == cursor) {
            return execution_rows()[table.rows[set][way]].in_use ? -1 : way;
        }
    }
    for (int way = 0; way < WAYS; way++) {
        const qp_execution *e = &execution_rows()[table.rows[set][way]];
        if (!cursors[way]) {
            return way;
        }
        if (!e->in_use && (!first || is_replaced_before(e, first))) {
            first = e;
            place = way;
        }
    }
    return place;
}

void qp_execution_mark_pending(const qp_execution *e)
{
    table.unsettled[cursor_set(e->cursor)] = true;
}

qp_execution *qp_execution_keep_for_fetches(const qp_execution *e)
{
    uint32_t set = cursor_set(e->cursor);
    int way = way_in_set(set, e->cursor);
    uint16_t *row = way < 0 ? NULL : &table.rows[set][way];
    if (row && !*row) {
        uint32_t added = qp_rows_add(QP_CALL_ROWS, 1);
        *row = added == UINT32_MAX ? 0 : (uint16_t)added;
    }
    if (!row || !*row) {
        return NULL;
    }
    qp_execution *old = &execution_rows()[*row];
    if (table.cursors[set][way]) {
        qp_execution_flush(old, NULL, NULL, NULL);
    }
    table.cursors[set][way] = e->cursor;
    *old = *e;
    return old;
}

/* Flushes a young execution and frees its slot. */
static void flush_and_free(qp_execution *e)
{
    qp_execution_flush(e, NULL, NULL, NULL);
    if (e->cursor) {
        qp_execution_keep_for_fetches(e);
        e->cursor = NULL;
    }
    e->stage = QP_STAGE_FREE;
}

/* Frees all young executions that have no call in progress. */
static QP_COLD void retire_young(void)
{
    for (int i = 0; i < QP_YOUNG; i++) {
        if (!table.young[i].in_use) {
            flush_and_free(&table.young[i]);
        }
    }
    table.next = 0;
}

qp_execution *qp_execution_reserve_slot(void)
{
    for (int turns = 0; turns < 2; turns++) {
        while (table.next < QP_YOUNG) {
            qp_execution *e = &table.young[table.next++];
            if (e->in_use) {
                continue;
            }
            if (e->stage != QP_STAGE_FREE) {
                flush_and_free(e); /* its call was in progress when the others were freed */
            }
            e->in_use = true;
            e->stage = QP_STAGE_BEGINNING;
            return e;
        }
        retire_young();
    }
    return NULL;
}

/* An addition to the timeline, for all calls of an execution that are flushed together: from the
 * start of the first call to the end of the last call. */
typedef struct {
    uint64_t from_ticks;
    uint64_t end_ticks;
    int64_t calls;
    int64_t rows;
    int64_t self_ns;
} plot;

static int64_t self_time_ns(int64_t ns, int64_t nested_ticks)
{
    int64_t self_ns = ns - (nested_ticks ? qp_ticks_to_ns(nested_ticks) : 0);
    return self_ns > 0 ? self_ns : 0;
}

/* Returns the aggregate of the operation that began an execution, even if it has been emptied. */
static QP_INLINE qp_aggregate *aggregate_of_begin(qp_execution *e)
{
    if (e->stage == QP_STAGE_BEGUN || e->generation != qp_aggregates_generation) {
        e->generation = qp_aggregates_generation;
        e->began_row = qp_aggregate_number(qp_aggregate_of(&e->meter.key));
    }
    return (qp_aggregate *)qp_first_row(QP_AGGREGATE_ROWS) + e->began_row;
}

static void settle_beginning(qp_execution *e, qp_aggregate *sums, plot *plotted)
{
    int64_t ns = qp_ticks_to_ns(e->ticks);
    int64_t self_ns = self_time_ns(ns, e->nested_ticks);
    e->count_before = sums->count;
    qp_release_store(&e->stage, QP_STAGE_SETTLING);
    qp_change_begins(sums);
    qp_aggregate_add_calls(sums, 1, ns, self_ns, e->rows, ns, ns);
    qp_change_ends(sums);
    e->duration_ns = ns;
    e->settled_ns = -1;
    e->fetched = e->rows;
    e->stack = 0;
    e->stack_weight = e->stack_ns = 0;
    qp_release_store(&e->stage, QP_STAGE_SETTLED);
    *plotted = (plot){e->started_ticks, e->started_ticks + (uint64_t)e->ticks, 1, e->rows, self_ns};
}

static void settle_rows(qp_execution *e, const qp_aggregate *began_sums, plot *plotted)
{
    qp_pending_rows *p = &e->pending;
    qp_aggregate *sums = qp_aggregate_of_fetch(began_sums, p->operation);
    int64_t total_ns = qp_ticks_to_ns(p->ticks);
    if (p->timed_calls && p->timed_calls < p->calls) {
        total_ns = (int64_t)((double)total_ns * (double)p->calls / (double)p->timed_calls);
    }
    int64_t self_ns = self_time_ns(total_ns, p->nested_ticks);
    p->row = qp_aggregate_number(sums);
    p->count_before = sums->count;
    qp_release_store(&p->stage, QP_STAGE_SETTLING);
    qp_change_begins(sums);
    qp_aggregate_add_calls(sums, p->calls, total_ns, self_ns, p->rows, qp_ticks_to_ns(p->min_ticks),
                           qp_ticks_to_ns(p->max_ticks));
    sums->errors += p->errors;
    qp_change_ends(sums);
    e->duration_ns += total_ns;
    e->fetched += p->rows;
    *plotted =
        (plot){plotted->calls ? plotted->from_ticks : e->plotted_ticks, p->last_ticks,
               plotted->calls + p->calls, plotted->rows + p->rows, plotted->self_ns + self_ns};
    qp_release_store(&p->calls, 0);
    qp_release_store(&p->stage, QP_STAGE_FREE);
}

/* Adds an execution to the distribution of durations, or moves the execution if it has become
 * longer. An execution that began before the aggregates were emptied, and was not carried over, is
 * not moved. */
static void settle_duration(qp_execution *e, uint32_t generation, qp_aggregate *sums)
{
    if (e->duration_ns == e->settled_ns) {
        return;
    }
    if (generation == qp_aggregates_generation) {
        qp_change_begins(sums);
        qp_aggregate_move_duration(sums, e->settled_ns, e->duration_ns);
        qp_change_ends(sums);
    }
    e->settled_ns = e->duration_ns;
}

/* Adds the settled time to the execution's span. */
static void add_to_span(const qp_execution *e, plot plotted)
{
    const qp_execution_work work = {e->started_ticks, plotted.end_ticks, plotted.self_ns,
                                    plotted.rows};
    qp_span_add_database(e, &work);
}

void qp_execution_flush(qp_execution *e, PyThreadState *tstate, PyObject *sql, PyObject *parameters)
{
    bool settled = e->stage == QP_STAGE_SETTLED && !e->pending.calls;
    if (e->ignored || settled || e->stage < QP_STAGE_BEGUN) {
        return;
    }
    plot plotted = {0};
    bool is_new = e->stage == QP_STAGE_BEGUN;
    uint32_t settled_in = e->generation;
    qp_aggregate *sums = aggregate_of_begin(e);
    if (is_new) {
        settle_beginning(e, sums, &plotted);
        settled_in = e->generation;
    }
    if (e->pending.calls) {
        settle_rows(e, sums, &plotted);
    }
    qp_recent_call_settle(e, is_new);
    settle_duration(e, settled_in, sums);
    qp_timeline_add(plotted.from_ticks, plotted.end_ticks, plotted.calls, plotted.rows,
                    plotted.self_ns);
    e->plotted_ticks = plotted.end_ticks;
    if (e->span) {
        add_to_span(e, plotted);
    }
    if (qp_workload_on && e->meter.key.operation == QP_EXECUTE) {
        qp_workload_add_fetched_rows(e->serial, e->fetched - e->rows);
    }
    qp_execution_sample(e, tstate, sql, parameters);
}

void qp_executions_flush(void)
{
    for (int i = 0; i < QP_YOUNG; i++) {
        qp_execution_flush(&table.young[i], NULL, NULL, NULL);
    }
    for (uint32_t set = 0; set < SETS; set++) {
        for (int way = 0; table.unsettled[set] && way < WAYS; way++) {
            if (table.cursors[set][way]) {
                qp_execution_flush(&execution_rows()[table.rows[set][way]], NULL, NULL, NULL);
            }
        }
        table.unsettled[set] = false;
    }
}

void qp_executions_visit(void (*visit)(qp_execution *))
{
    for (int i = 0; i < QP_YOUNG; i++) {
        visit(&table.young[i]);
    }
    for (uint32_t set = 0; set < SETS; set++) {
        for (int way = 0; way < WAYS; way++) {
            if (table.cursors[set][way]) {
                visit(&execution_rows()[table.rows[set][way]]);
            }
        }
    }
}

qp_aggregate *qp_execution_aggregate(qp_execution *e)
{
    return aggregate_of_begin(e);
}

void qp_execution_count_error(qp_execution *e)
{
    qp_aggregate_count_error(aggregate_of_begin(e));
}

void qp_execution_abandon(qp_execution *e)
{
    e->cursor = NULL;
    e->pending.calls = 0;
    e->stage = QP_STAGE_FREE;
    e->in_use = false;
}

static void clear_executions(bool in_use_too)
{
    for (int i = 0; i < QP_YOUNG; i++) {
        if (in_use_too || !table.young[i].in_use) {
            table.young[i] = (qp_execution){0};
        }
    }
    memset(table.unsettled, 0, sizeof table.unsettled);
    table.next = 0;
    for (uint32_t set = 0; set < SETS; set++) {
        for (int way = 0; way < WAYS; way++) {
            qp_execution *old = &execution_rows()[table.rows[set][way]];
            if (table.cursors[set][way] && (in_use_too || !old->in_use)) {
                table.cursors[set][way] = NULL;
                *old = (qp_execution){0};
            }
        }
    }
}

void qp_executions_clear(void)
{
    clear_executions(false);
}

void qp_executions_after_fork(void)
{
    if (!qp_row_count(QP_CALL_ROWS)) { /* the child's memory lacks these rows */
        qp_rows_add(QP_CALL_ROWS, QP_YOUNG);
        memset(table.rows, 0, SETS * sizeof *table.rows);
    }
    clear_executions(true);
}
