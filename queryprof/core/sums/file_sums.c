#include "sums/file_sums.h"

#include "memory/changes.h"
#include "memory/region.h"
#include "runtime/index.h"
#include "runtime/operations.h"
#include "statements/statements.h"

enum { SLOTS = 2 * QP_FILE_WORKS };

static struct {
    qp_index index;         /* finds a row by its key */
    qp_file_work_row *last; /* the row found last, because loops use one row */
} table;

bool qp_file_sums_start(void)
{
    return qp_index_start(&table.index, SLOTS);
}

void qp_file_sums_stop(void)
{
    qp_index_stop(&table.index);
    table.last = NULL;
}

void qp_file_sums_clear(void)
{
    if (qp_row_count(QP_FILE_WORK_ROWS)) { /* otherwise a fork would copy pages for nothing */
        memset(table.index.slots, 0, SLOTS * sizeof *table.index.slots);
    }
    qp_rows_clear(QP_FILE_WORK_ROWS);
    table.last = NULL;
}

/* Returns the row of a key, and adds it if it is new; NULL if there is no room. */
static qp_file_work_row *find_or_add(const qp_key *key)
{
    qp_file_work_row *rows = qp_first_row(QP_FILE_WORK_ROWS);
    uint32_t slot = qp_index_begin(&table.index, qp_hash_bytes((const char *)key, sizeof *key));
    for (; table.index.slots[slot]; slot = qp_index_next(&table.index, slot)) {
        qp_file_work_row *known = &rows[table.index.slots[slot] - 1];
        if (qp_same_key(&known->key, key)) {
            return known;
        }
    }
    /* The last rows, one for each operation, collect all work that does not fit. */
    bool has_room = qp_row_count(QP_FILE_WORK_ROWS) < QP_FILE_WORKS - QP_OPERATIONS ||
                    key->statement == QP_STATEMENT_OTHER;
    uint32_t added = has_room ? qp_rows_add(QP_FILE_WORK_ROWS, 1) : UINT32_MAX;
    if (added == UINT32_MAX) {
        return NULL;
    }
    table.index.slots[slot] = added + 1;
    rows[added] = (qp_file_work_row){.mark = qp_mark - 1, .key = *key};
    return &rows[added];
}

static qp_file_work_row *file_work_row(const qp_key *key)
{
    if (table.last && qp_same_key(&table.last->key, key)) {
        return table.last;
    }
    qp_file_work_row *found = find_or_add(key);
    if (!found) {
        found =
            find_or_add(&(qp_key){.statement = QP_STATEMENT_OTHER, .operation = key->operation});
    }
    return table.last = found;
}

void qp_file_sums_add(const qp_key *key, const qp_file_sums *work)
{
    qp_file_work_row *row = file_work_row(key);
    if (!row) {
        return;
    }
    if (qp_row_before_change(QP_FILE_WORK_ROWS, row)) {
        row->max_lock_before_ticks = row->max_lock_before_ticks > row->max_lock_ticks
                                         ? row->max_lock_before_ticks
                                         : row->max_lock_ticks;
        row->max_lock_ticks = 0;
    }
    row->calls++;
    row->lock_waits += work->lock_ticks > 0;
    row->max_lock_ticks =
        work->lock_ticks > row->max_lock_ticks ? work->lock_ticks : row->max_lock_ticks;
    qp_file_sums_merge(&row->sums, work);
}
