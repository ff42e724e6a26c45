/* Reads the counters of all counted statements, on open connections that no other thread is
 * using. */
#pragma once

#include "memory/tables.h"

/* Adds all counters so far to the aggregates; busy connections are left for the next time. */
void qp_counters_flush(void);

/* Calls `note` for the key of each statement that SQLite still runs, or that it may: of a
 * connection that another thread uses. Statements that may be finalized at any time (of drivers
 * other than sqlite3) are not known. */
void qp_counters_running(void (*note)(const qp_key *key));
