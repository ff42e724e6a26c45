/* Finds where SQLite stores the value of changes() (https://www.sqlite.org/c3ref/changes.html), so
 * that queryprof can restore the value.
 *
 * EXPLAIN of a statement that writes sets the value to 0, and no function of SQLite can restore it.
 * The value's offset in a sqlite3 is the same for all connections of one library. queryprof
 * searches for the offset on its own connection, with counts that no other field has. It accepts an
 * offset only if SQLite returns the value that queryprof writes there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Searches for the offset on `db`, an empty sqlite3 of qp_sqlite that nothing else uses. If the
 * offset is not found, qp_changes_value_is_known() is false. */
void qp_changes_value_find(void *db);

bool qp_changes_value_is_known(void);

/* Read and restore the value of changes() on a connection (sqlite3 *). The caller must hold the
 * connection's mutex. */
int64_t qp_changes_value_read(const void *db);
void qp_changes_value_restore(void *db, int64_t changes);
