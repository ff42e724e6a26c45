/* Where SQLite keeps what changes() returns (https://www.sqlite.org/c3ref/changes.html), so that it
 * can be put back.
 *
 * EXPLAIN of a statement that writes sets it to 0, and no function of SQLite sets it otherwise. Its
 * place in a sqlite3 is the same for all connections of one library; it is found on a connection of
 * ours, which counts what nothing else counts, and believed only if SQLite returns what was put
 * there.
 */
#ifndef QP_SQLITE_CHANGE_COUNTER_H
#define QP_SQLITE_CHANGE_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

/* Looks for the place on `db`, a sqlite3 of qp_sqlite that holds nothing and that nothing else
 * uses. Where it is not found, qp_changes_known() is false. */
void qp_changes_find(void *db);

bool qp_changes_known(void);

/* What changes() returns on a connection (sqlite3 *), and back to that; with the connection's
 * mutex. */
int64_t qp_changes_save(const void *db);
void qp_changes_put_back(void *db, int64_t changes);

#endif
