/* Errors: the number of exceptions by type and key. */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "memory/tables.h"

/* Counts the current exception, by key and type. For an exception about a lock, the type includes
 * SQLite's name of the error. `would_write`: a lock was refused to a transaction that had begun to
 * read. Returns whether the exception is about a lock. No code of the program runs. */
bool qp_count_exception(const qp_key *key, bool would_write);
