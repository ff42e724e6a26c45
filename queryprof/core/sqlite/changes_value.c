#include "sqlite/changes_value.h"

#include <stddef.h>
#include <string.h>

#include "sqlite/library.h"

enum { FIELD_BYTES_MAX = 8 };

static struct {
    size_t offset; /* offset in a sqlite3; 0 if unknown */
    size_t bytes;  /* size of the field: 8 since SQLite 3.37 */
} place;

static bool run_sql(void *db, const char *sql)
{
    void *statement = NULL;
    bool done = qp_sqlite.prepare(db, sql, -1, &statement, NULL) == 0 && statement &&
                qp_sqlite.step(statement) == QP_DONE;
    return qp_sqlite.finalize(statement) == 0 && done;
}

static int64_t read_at(const void *db, size_t offset)
{
    int64_t wide;
    int32_t narrow;
    if (place.bytes == sizeof wide) {
        memcpy(&wide, (const char *)db + offset, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const char *)db + offset, sizeof narrow);
    return narrow;
}

static void write_at(void *db, size_t offset, int64_t value)
{
    int32_t narrow = (int32_t)value;
    if (place.bytes == sizeof value) {
        memcpy((char *)db + offset, &value, sizeof value);
    } else {
        memcpy((char *)db + offset, &narrow, sizeof narrow);
    }
}

/* Returns the only offset that contained the number of changed rows after each of these statements;
 * 0 if there are several such offsets or none. */
static size_t find_offset(void *db)
{
    enum { CANDIDATES = 64 };
    /* All these numbers of rows differ from each other, from the rowids and from the totals, so
     * that only one field can match. */
    static const struct {
        const char *sql;
        int changes;
    } rounds[] = {
        {"INSERT INTO t SELECT n FROM (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 "
         "FROM r"
         " LIMIT 397) SELECT n FROM r)",
         397},
        {"DELETE FROM t WHERE a <= 23", 23},
        {"UPDATE t SET a = -a WHERE a <= 180", 157},
        {"DELETE FROM t WHERE a < -170", 10},
    }; /* clang-format keeps these */
    size_t candidates[CANDIDATES];
    size_t count = 0, size = (size_t)qp_sqlite.msize(db);
    for (size_t round = 0; round < sizeof rounds / sizeof *rounds; round++) {
        if (!run_sql(db, rounds[round].sql) || qp_sqlite.changes(db) != rounds[round].changes) {
            return 0;
        }
        size_t kept = 0;
        if (round == 0) {
            for (size_t at = 0; at + FIELD_BYTES_MAX <= size && count < CANDIDATES;
                 at += place.bytes) {
                if (read_at(db, at) == rounds[0].changes) {
                    candidates[count++] = at;
                }
            }
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            if (read_at(db, candidates[i]) == rounds[round].changes) {
                candidates[kept++] = candidates[i];
            }
        }
        count = kept;
    }
    return count == 1 ? candidates[0] : 0;
}

void qp_changes_value_find(void *db)
{
    static const int64_t tried[] = {7, 0, 123456, 1};
    if (place.offset) {
        return; /* the offset is known for the same library, and a thread without the GIL may use
                 * it */
    }
    place.bytes = qp_sqlite.has_wide_changes ? sizeof(int64_t) : sizeof(int32_t);
    if (!run_sql(db, "CREATE TEMP TABLE t(a)")) {
        return;
    }
    size_t offset = find_offset(db);
    int total = qp_sqlite.total_changes(db);
    for (size_t i = 0; offset && i < sizeof tried / sizeof *tried; i++) {
        write_at(db, offset, tried[i]);
        bool is_it = qp_sqlite.changes(db) == tried[i] && qp_sqlite.total_changes(db) == total;
        offset = is_it ? offset : 0;
    }
    place.offset = offset;
    run_sql(db, "DROP TABLE t");
}

bool qp_changes_value_is_known(void)
{
    return place.offset != 0;
}

int64_t qp_changes_value_read(const void *db)
{
    return read_at(db, place.offset);
}

void qp_changes_value_restore(void *db, int64_t changes)
{
    write_at(db, place.offset, changes);
}
