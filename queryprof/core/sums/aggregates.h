/* Aggregates: the sums of calls by (statement, call path, operation, span, thread), for the whole
 * recording.
 *
 * The table is bounded. When it is three quarters full, new entries get the thread "(other)". When
 * it is seven eighths full, they also get the call path "(other)". When it is full, only operations
 * are distinguished.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/changes.h"
#include "memory/histogram.h"
#include "memory/tables.h"
#include "runtime/operations.h"

/* Allocates the tables. Returns false if out of memory. */
bool qp_aggregates_start(void);
void qp_aggregates_stop(void);

/* Returns the entry of a key, or the entry for keys that do not fit. Valid until
 * qp_aggregates_clear. */
qp_aggregate *qp_aggregate_of(const qp_key *key);

/* Returns the entry for an operation that fetches rows of an execution. `began` is the entry of the
 * operation that began the execution. Otherwise like qp_aggregate_of. */
qp_aggregate *qp_aggregate_of_fetch(const qp_aggregate *began, qp_operation operation);

/* Returns whether any call has been added. */
bool qp_aggregates_have_calls(void);

/* Returns the row number of an entry. */
uint32_t qp_aggregate_number(const qp_aggregate *entry);

/* Moves an entry's extremes to `before`, and starts new extremes at the mark. */
void qp_aggregate_renew_extremes(qp_aggregate *entry);

static inline void qp_aggregate_before_change(qp_aggregate *entry)
{
    if (qp_row_before_change(QP_AGGREGATE_ROWS, entry)) {
        qp_aggregate_renew_extremes(entry);
    }
}

/* Adds calls that took from `min_ns` to `max_ns` each. */
static inline void qp_aggregate_add_calls(qp_aggregate *to, int64_t calls, int64_t total_ns,
                                          int64_t self_ns, int64_t rows, int64_t min_ns,
                                          int64_t max_ns)
{
    qp_aggregate_before_change(to);
    if (min_ns < to->now.min_ns) {
        to->now.min_ns = min_ns;
    }
    if (max_ns > to->now.max_ns) {
        to->now.max_ns = max_ns;
    }
    to->count += calls;
    to->rows += rows;
    to->total_ns += total_ns;
    to->self_ns += self_ns;
}

static inline void qp_aggregate_count_error(qp_aggregate *to)
{
    qp_aggregate_before_change(to);
    to->errors++;
}

/* Moves an execution in the distribution of durations from `from_ns` (negative: it is new) to
 * `to_ns`, which is not shorter. */
void qp_aggregate_move_duration(qp_aggregate *entry, int64_t from_ns, int64_t to_ns);

/* Remove an unfinished execution from the distribution of durations, and add it again.
 * `is_carried`: an earlier part of the recording counts the execution. */
void qp_aggregate_remove_execution(qp_aggregate *entry, int64_t ns);
void qp_aggregate_restore_execution(qp_aggregate *entry, int64_t ns, bool is_carried);

/* Adds the counters `more` to `to`. */
static inline void qp_counters_add(qp_counters *to, const qp_counters *more)
{
    QP_COUNTERS(QP_ADD_SUM)
}

/* Adds counters to an entry. */
void qp_aggregate_add_counters(qp_aggregate *entry, const qp_counters *counters);

/* Drops all entries and empties their rows. */
void qp_aggregates_clear(void);

/* The number of times that all entries were dropped. References from an older generation are not
 * valid. */
extern uint32_t qp_aggregates_generation;

/* Returns whether the table is so full that the entries must be written out and dropped. */
bool qp_aggregates_nearly_full(void);
