/* Readings of all statements that are counted, whichever call they belong to: of connections that
 * are alive and that no other thread uses. */
#pragma once

#include "memory/tables.h"

/* Adds all counters so far to the aggregates; busy connections are left for the next time. */
void qp_counters_flush(void);

/* The keys of statements that SQLite still runs, `room` of them at the most; returns how many.
 * Those of busy connections, and of drivers whose statements may be finalized at any time, are not
 * known. */
int qp_counters_running(qp_key *keys, int room);
