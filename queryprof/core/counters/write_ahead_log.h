/* How much of a database's write-ahead log is in use
 * (https://www.sqlite.org/fileformat2.html#walformat). */
#pragma once

#include <stdint.h>

/* Returns the used bytes of a database's log (the path is the database's); 0 if there is no log, or
 * the size is unknown. SQLite keeps the file's size when it restarts the log: old frames have other
 * salts. Opens and closes the log, on which SQLite has no locks. Preserves errno. Any thread. */
int64_t qp_log_bytes(const char *database);
