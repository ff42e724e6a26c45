/* The slowest spans of each name, with their runs. A run is a series of executions of one statement
 * from one call path in one thread, without another statement in between.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/span_rows.h"

/* The runs of a running span. */
typedef struct qp_span_runs qp_span_runs;

bool qp_slow_spans_start(void);
void qp_slow_spans_stop(void);

/* Forgets the slowest spans. The runs of running spans stay. */
void qp_slow_spans_clear(void);

/* In a forked child: frees all runs. */
void qp_slow_spans_after_fork(void);

/* Adds an execution to a span's last run, or begins another run. Returns the run's number, or 0 if
 * there is no room. If `*runs` is NULL, sets it to a buffer, which the span must give back with
 * qp_span_runs_release. */
uint8_t qp_span_runs_count_execution(qp_span_runs **runs, const qp_key *key);

/* Moves the last execution that was counted in a run to another statement, and returns the number
 * of its run. */
uint8_t qp_span_runs_change_statement(qp_span_runs *runs, uint8_t run, uint32_t statement);

/* The time and work of an execution in a run. */
typedef struct {
    uint64_t start_ticks;
    uint64_t end_ticks;
    int64_t self_ns;
    int64_t rows;
} qp_execution_work;

void qp_span_runs_add_work(qp_span_runs *runs, uint8_t run, const qp_execution_work *work);

/* Adds the runs of an inner span to the runs of its outer span. */
void qp_span_runs_merge(qp_span_runs **outer, const qp_span_runs *inner);

/* Gives back a buffer of runs for reuse; ignores NULL. */
void qp_span_runs_release(qp_span_runs *runs);

/* Returns whether a span with this name and duration is one of the slowest. */
bool qp_is_slow_span(uint32_t span, int64_t duration_ns);

/* Keeps one of the slowest spans; `runs` may be NULL. */
void qp_slow_span_add(const qp_ended_span *ended, uint64_t started_ticks, const qp_span_runs *runs);
