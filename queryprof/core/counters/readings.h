/* Reads the counters of all counted statements, on open connections that no other thread is
 * using. */
#pragma once

#include "memory/tables.h"

/* Adds all counters so far to the aggregates. Skips busy connections until the next call. */
void qp_counters_flush(void);

/* Calls `note` for the key of each statement that is still running. If another thread uses a
 * connection, all statements of the connection may be running, so `note` is called for each.
 * Excludes transient statements (of drivers other than sqlite3), because they may be finalized at
 * any time. */
void qp_counters_visit_running(void (*note)(const qp_key *key));
