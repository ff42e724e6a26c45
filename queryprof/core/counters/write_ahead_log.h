/* Finds out how much of a database's write-ahead log is in use
 * (https://www.sqlite.org/fileformat2.html#walformat). */
#pragma once

#include <stdint.h>

/* Returns the used bytes of the log of the database at this path; 0 if there is no log, or the size
 * is unknown. The size of the log's file does not show its use: SQLite keeps the size when it
 * restarts the log, and old frames have other salts. Opens and closes the log, on which SQLite has
 * no locks. Preserves errno. May be called in any thread. */
int64_t qp_wal_used_bytes(const char *database);
