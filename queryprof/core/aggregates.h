/* Aggregates: what was measured since the last flush, added up by
 * (statement, call path, operation, span, thread).
 *
 * A bounded table. An entry stays until the table is nearly full, so that pointers to entries
 * hold for a generation; taking the sums empties an entry and keeps it.
 */
#ifndef QP_AGGREGATES_H
#define QP_AGGREGATES_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "histogram.h"
#include "operations.h"

typedef struct {
    uint32_t statement;
    uint32_t path;
    uint16_t span;
    uint16_t thread;
    uint32_t operation;
} qp_key; /* without padding */

static inline bool qp_same_key(const qp_key *a, const qp_key *b)
{
    return !memcmp(a, b, sizeof *a);
}

/* SQLite's own counters of statements (sqlite3_stmt_status) and page fetches (sampled). */
typedef struct {
    int64_t vm_steps;
    int64_t full_scan_steps;
    int64_t sorts;
    int64_t automatic_indexes;
    int64_t reprepares;
    int64_t page_fetches;       /* of the sampled executions alone */
    int64_t counted;            /* executions whose counters are known */
    int64_t page_fetch_samples; /* executions whose page fetches are known */
} qp_counters;

typedef struct {
    qp_key key;
    bool changed; /* since the sums were last taken */
    int64_t count;
    int64_t errors;
    int64_t rows;
    int64_t total_ns;
    int64_t self_ns;
    int64_t min_ns;
    int64_t max_ns;
    /* Of the executions that this operation began: the operation and the fetches it led to. */
    int64_t execution_max_ns;
    double execution_sum_sq_ns2;
    qp_counters counters;
    uint32_t serving[QP_NEXT - QP_FETCHONE + 1]; /* entries of the same key but for these
                                                  * operations, by number; 0: not looked up */
    uint16_t octaves[QP_OCTAVES]; /* 1 + number of a chunk of 16 bucket counts; 0: none */
} qp_aggregate;

/* Allocates the tables; false without memory. */
bool qp_aggregates_start(void);
void qp_aggregates_stop(void);

/* The entry of a key; when the table is full, its operation's entry for all others. The table
 * owns it; it is valid while qp_aggregates_generation stays the same. */
qp_aggregate *qp_aggregate_of(const qp_key *key);
uint32_t qp_aggregates_generation(void);

/* The entry for an operation that serves rows of what `began` began; as qp_aggregate_of. */
qp_aggregate *qp_aggregate_serving(qp_aggregate *began, qp_operation operation);

/* Puts an entry among those that have changed. */
void qp_aggregate_first_change(qp_aggregate *sums);

static inline void qp_aggregate_change(qp_aggregate *sums)
{
    if (!sums->changed) {
        qp_aggregate_first_change(sums);
    }
}

/* Adds calls that took from `min_ns` to `max_ns` each. */
static inline void qp_aggregate_add(qp_aggregate *sums, int64_t calls, int64_t total_ns,
                                    int64_t self_ns, int64_t rows, int64_t min_ns, int64_t max_ns)
{
    if (sums->count == 0 || min_ns < sums->min_ns) {
        sums->min_ns = min_ns;
    }
    if (max_ns > sums->max_ns) {
        sums->max_ns = max_ns;
    }
    qp_aggregate_change(sums);
    sums->count += calls;
    sums->rows += rows;
    sums->total_ns += total_ns;
    sums->self_ns += self_ns;
}

/* Moves an execution in the distribution of durations from `from_ns` (negative: it is new) to
 * `to_ns`, which is not shorter. */
void qp_aggregate_move(qp_aggregate *sums, int64_t from_ns, int64_t to_ns);

/* Adds counters to others. */
static inline void qp_counters_add(qp_counters *to, const qp_counters *from)
{
    to->vm_steps += from->vm_steps;
    to->full_scan_steps += from->full_scan_steps;
    to->sorts += from->sorts;
    to->automatic_indexes += from->automatic_indexes;
    to->reprepares += from->reprepares;
    to->page_fetches += from->page_fetches;
    to->counted += from->counted;
    to->page_fetch_samples += from->page_fetch_samples;
}

/* Adds counters to an entry. */
void qp_aggregate_count(qp_aggregate *sums, const qp_counters *counters);

/* Counts an exception of this type under a key. */
void qp_aggregate_error(const qp_key *key, PyObject *exception_type);

/* Empties at most `limit` changed entries into a new list of tuples (see _core.pyi); NULL with
 * an exception, and then the entries not in the list keep their sums. */
PyObject *qp_aggregates_take(Py_ssize_t limit);

/* Empties the errors into a new list of tuples. */
PyObject *qp_errors_take(void);

/* Starts the next taking from the first entry again. */
void qp_aggregates_rewind(void);

/* Whether anything was measured that has not been taken. */
bool qp_aggregates_changed(void);

/* Whether the table should be emptied at the next occasion. */
bool qp_aggregates_nearly_full(void);

/* Drops all entries, taken or not, and begins a new generation. */
void qp_aggregates_forget(void);

/* Calls that went to an entry for all others, for want of room. */
uint64_t qp_aggregates_folded(void);

#endif
