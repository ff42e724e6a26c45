#include "context/slow_spans.h"

#include <string.h>

#include "memory/region.h"
#include "runtime/allocation.h"
#include "runtime/compiler.h"
#include "statements/statements.h"

enum { BUFFERS = 256 /* maximum number of running spans whose runs are recorded */ };

/* While the span runs, times are clock ticks. */
struct qp_span_runs {
    struct qp_span_runs *next_free;
    uint32_t count;
    qp_span_run_row run[QP_SPAN_RUNS];
};

static struct {
    qp_span_runs *buffers[BUFFERS]; /* owned */
    uint32_t count;
    qp_span_runs *free;
    int64_t *least_ns; /* for each name, the duration that a span must exceed to be kept */
} table;

bool qp_slow_spans_start(void)
{
    table.least_ns = qp_allocate(QP_NAMES, sizeof *table.least_ns);
    return table.least_ns != NULL;
}

void qp_slow_spans_stop(void)
{
    for (uint32_t i = 0; i < table.count; i++) {
        qp_free(table.buffers[i]);
    }
    qp_free(table.least_ns);
    memset(&table, 0, sizeof table);
}

void qp_slow_spans_clear(void)
{
    memset(table.least_ns, 0, QP_NAMES * sizeof *table.least_ns);
    qp_rows_clear(QP_SLOW_SPAN_ROWS);
    qp_rows_clear(QP_SPAN_RUN_ROWS);
}

void qp_slow_spans_after_fork(void)
{
    table.free = NULL;
    for (uint32_t i = 0; i < table.count; i++) {
        qp_span_runs_release(table.buffers[i]);
    }
}

static QP_COLD qp_span_runs *add_buffer(void)
{
    qp_span_runs *added = table.count < BUFFERS ? qp_allocate(1, sizeof *added) : NULL;
    if (added) {
        table.buffers[table.count++] = added;
    }
    return added;
}

/* Marks a span for which there was no buffer. It gets no runs until it ends, so that it never has
 * only some of its runs. */
static qp_span_runs unknown_runs;

static qp_span_runs *take_buffer(void)
{
    qp_span_runs *taken = table.free ? table.free : add_buffer();
    if (!taken) {
        return &unknown_runs;
    }
    table.free = taken->next_free;
    return taken;
}

void qp_span_runs_release(qp_span_runs *runs)
{
    if (runs && runs != &unknown_runs) {
        runs->count = 0;
        runs->next_free = table.free;
        table.free = runs;
    }
}

/* Returns the number of the run to which executions with this key are added; 0 if there is no
 * buffer. */
static inline uint8_t find_or_add_run(qp_span_runs **runs, const qp_key *key)
{
    if (!*runs) {
        *runs = take_buffer();
    }
    if (*runs == &unknown_runs) {
        return 0;
    }
    qp_span_runs *known = *runs;
    bool is_full = known->count == QP_SPAN_RUNS;
    if (!is_full && (!known->count || !qp_same_key(&known->run[known->count - 1].key, key))) {
        known->run[known->count++] = (qp_span_run_row){.key = *key, .start_ticks = INT64_MAX};
        if (known->count == QP_SPAN_RUNS) {
            known->run[QP_SPAN_RUNS - 1].key = (qp_key){.statement = QP_STATEMENT_OTHER};
        }
    }
    return (uint8_t)known->count;
}

uint8_t qp_span_runs_count_execution(qp_span_runs **runs, const qp_key *key)
{
    uint8_t run = find_or_add_run(runs, key);
    if (run) {
        (*runs)->run[run - 1].executions++;
    }
    return run;
}

uint8_t qp_span_runs_change_statement(qp_span_runs *runs, uint8_t run, uint32_t statement)
{
    if (!run || run == QP_SPAN_RUNS || runs == &unknown_runs) {
        return run;
    }
    qp_span_run_row *known = &runs->run[run - 1];
    qp_key key = known->key;
    key.statement = statement;
    if (known->executions == 1) {
        known->key = key;
        return run;
    }
    known->executions--;
    return qp_span_runs_count_execution(&runs, &key);
}

void qp_span_runs_add_work(qp_span_runs *runs, uint8_t run, const qp_execution_work *work)
{
    if (run && runs != &unknown_runs) {
        qp_span_run_row *to = &runs->run[run - 1];
        int64_t start = (int64_t)work->start_ticks, end = (int64_t)work->end_ticks;
        to->start_ticks = start < to->start_ticks ? start : to->start_ticks;
        to->end_ticks = end > to->end_ticks ? end : to->end_ticks;
        to->self_ns += work->self_ns;
        to->rows += work->rows;
    }
}

void qp_span_runs_merge(qp_span_runs **outer, const qp_span_runs *inner)
{
    if (inner == &unknown_runs) {
        qp_span_runs_release(*outer);
        *outer = &unknown_runs;
    }
    for (uint32_t i = 0; inner && i < inner->count; i++) {
        const qp_span_run_row *from = &inner->run[i];
        uint8_t run = find_or_add_run(outer, &from->key);
        if (run) {
            const qp_execution_work work = {(uint64_t)from->start_ticks, (uint64_t)from->end_ticks,
                                            from->self_ns, from->rows};
            (*outer)->run[run - 1].executions += from->executions;
            qp_span_runs_add_work(*outer, run, &work);
        }
    }
}

/* Returns the row for a span of this length: a new row, or the row of the shortest span with the
 * same name. NULL if there is no room. */
static qp_slow_span_row *row_for_span(const qp_ended_span *ended)
{
    qp_slow_span_row *rows = qp_first_row(QP_SLOW_SPAN_ROWS), *shortest = NULL;
    uint32_t of_name = 0;
    for (uint32_t i = 0; i < qp_row_count(QP_SLOW_SPAN_ROWS); i++) {
        if (rows[i].ended.span == ended->span) {
            of_name++;
            bool is_shortest = !shortest || rows[i].ended.duration_ns < shortest->ended.duration_ns;
            shortest = is_shortest ? &rows[i] : shortest;
        }
    }
    if (of_name == QP_SLOWEST) {
        return shortest;
    }
    /* The runs are added first, because a reader must not see a span without its runs. */
    bool has_room = qp_row_count(QP_SLOW_SPAN_ROWS) < QP_SLOW_SPANS &&
                    qp_rows_add(QP_SPAN_RUN_ROWS, QP_SPAN_RUNS) != UINT32_MAX;
    uint32_t added = has_room ? qp_rows_add(QP_SLOW_SPAN_ROWS, 1) : UINT32_MAX;
    return added == UINT32_MAX ? NULL : &rows[added];
}

/* Returns the duration that a span with this name must exceed to be kept. */
static int64_t shortest_kept_ns(uint32_t span)
{
    const qp_slow_span_row *rows = qp_first_row(QP_SLOW_SPAN_ROWS);
    uint32_t count = qp_row_count(QP_SLOW_SPAN_ROWS), of_name = 0;
    int64_t least_ns = INT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].ended.span == span) {
            of_name++;
            least_ns = rows[i].ended.duration_ns < least_ns ? rows[i].ended.duration_ns : least_ns;
        }
    }
    return of_name == QP_SLOWEST || (!of_name && count == QP_SLOW_SPANS) ? least_ns : -1;
}

static void store_runs(qp_slow_span_row *place, uint64_t started_ticks, const qp_span_runs *runs)
{
    uint32_t number = (uint32_t)(place - (qp_slow_span_row *)qp_first_row(QP_SLOW_SPAN_ROWS));
    place->first_run = number * QP_SPAN_RUNS;
    qp_span_run_row *to = (qp_span_run_row *)qp_first_row(QP_SPAN_RUN_ROWS) + place->first_run;
    place->runs = runs ? runs->count : 0;
    for (uint32_t i = 0; i < place->runs; i++) {
        bool is_known = runs->run[i].end_ticks; /* false if no execution of the run has ended */
        to[i] = runs->run[i];
        to[i].start_ticks = is_known ? to[i].start_ticks - (int64_t)started_ticks : 0;
        to[i].end_ticks = is_known ? to[i].end_ticks - (int64_t)started_ticks : 0;
    }
}

bool qp_is_slow_span(uint32_t span, int64_t duration_ns)
{
    return duration_ns > table.least_ns[span];
}

void qp_slow_span_add(const qp_ended_span *ended, uint64_t started_ticks, const qp_span_runs *runs)
{
    qp_slow_span_row *place = row_for_span(ended);
    if (place) {
        qp_change_begins(place);
        place->ended = *ended;
        store_runs(place, started_ticks, runs);
        qp_change_ends(place);
    }
    table.least_ns[ended->span] = shortest_kept_ns(ended->span);
}
