/* How much of a database's write-ahead log is in use
 * (https://www.sqlite.org/fileformat2.html#walformat). */
#pragma once

#include <stdint.h>

/* The bytes of the log of a database (its path) that are in use; 0: it has none, or it is not
 * known. SQLite keeps the file's size when it begins the log again: frames from before have other
 * salts. Opens and closes the log, on which SQLite has no locks. Keeps errno. Any thread. */
int64_t qp_log_bytes(const char *database);
