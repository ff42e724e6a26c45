/* Counters that were read where there is no GIL: they wait for the next probed call. */
#ifndef QP_COUNTERS_PENDING_COUNTERS_H
#define QP_COUNTERS_PENDING_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* Makes the lock, once; false without memory. */
bool qp_orphans_start(void);

/* Makes a new one in a forked child, and forgets what is the parent's. */
void qp_orphans_after_fork(void);

/* Keeps counters for a key; needs no GIL. */
void qp_orphan_keep(const qp_key *key, const qp_counters *counters);

/* Whether so many keys wait that they are to be collected now; a loop over one statement adds to
 * one, until they are settled. */
extern volatile bool qp_orphans_due;

/* Adds those that wait to their aggregates; with the GIL, as the next one. */
void qp_orphans_collect(void);

/* Adds counters to their aggregate. */
void qp_counters_add_to(qp_key key, const qp_counters *counters);

/* Statements whose counters were lost for want of room. */
uint64_t qp_counters_lost(void);

#endif
