/* Counters that were read without the GIL, and that are kept for the next probed call. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* In a forked child: clears the parent's state. */
void qp_pending_counters_after_fork(void);

/* Keeps counters for a key. The caller need not hold the GIL. */
void qp_pending_counters_add(const qp_key *key, const qp_counters *counters);

/* Moves the pending counters of a key to another statement, when the call's statement has been
 * decided. */
void qp_pending_counters_change_statement(const qp_key *from, uint32_t statement);

/* True if so many keys are pending that the counters must be collected now. A loop over one
 * statement adds to a single key until the next flush. */
extern volatile bool qp_pending_counters_due;

/* Adds the pending counters to their aggregates. The caller must hold the GIL. */
void qp_pending_counters_collect(void);

/* Adds counters to the aggregate of a key. The caller must hold the GIL. */
void qp_counters_add_to_key(qp_key key, const qp_counters *counters);

/* Returns the number of statements whose counters were lost because the table was full. */
uint64_t qp_counters_lost_statements(void);
