#include "sums/lock_sums.h"

#include "memory/changes.h"
#include "memory/region.h"
#include "runtime/clock.h"
#include "statements/statements.h"

enum {
    NOTABLE_NS = 1000000,        /* minimum duration of a hold or wait that is kept */
    LONGEST = QP_LOCK_EVENTS / 2 /* rows of the longest events; the others are of the newest ones */
};

/* Returns the row for locks with this kind, database and key; NULL if there is no room. */
static qp_lock_row *lock_row(const qp_lock *lock)
{
    static uint32_t last;
    qp_lock_row *rows = qp_first_row(QP_LOCK_ROWS);
    uint32_t count = qp_row_count(QP_LOCK_ROWS);
    if (last < count && !memcmp(&rows[last].lock, lock, sizeof *lock)) {
        return &rows[last];
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!memcmp(&rows[i].lock, lock, sizeof *lock)) {
            last = i;
            return &rows[i];
        }
    }
    /* The last rows, one for each kind, collect all locks that do not fit. */
    bool has_room = count < QP_LOCKS - QP_LOCK_KINDS || lock->key.statement == QP_STATEMENT_OTHER;
    uint32_t added = has_room ? qp_rows_add(QP_LOCK_ROWS, 1) : UINT32_MAX;
    if (added == UINT32_MAX) {
        return NULL;
    }
    rows[added] = (qp_lock_row){.mark = qp_mark - 1, .lock = *lock};
    return &rows[added];
}

void qp_lock_sums_add(const qp_lock *lock, const qp_lock_sums *held)
{
    qp_lock_row *row = lock_row(lock);
    if (!row) {
        row = lock_row(&(qp_lock){.kind = lock->kind,
                                  .key.statement = QP_STATEMENT_OTHER,
                                  .end_statement = QP_STATEMENT_OTHER});
    }
    if (!row) {
        return;
    }
    qp_lock_sums *sums = &row->sums;
    if (qp_row_before_change(QP_LOCK_ROWS, row)) {
        int64_t before = row->max_before_ticks;
        row->max_before_ticks = before > sums->max_ticks ? before : sums->max_ticks;
        sums->max_ticks = 0;
    }
    qp_lock_sums_merge(sums, held);
}

/* State of a full table; reset while rows are added. */
static struct {
    uint32_t oldest;  /* place of the oldest event among the newest ones */
    int64_t least_ns; /* duration of the shortest event among the longest ones; 0: unknown */
} full_table;

/* Keeps an event among the longest ones if there is a shorter one. */
static void keep_if_long(const qp_lock_event_row *event)
{
    if (event->duration_ns <= full_table.least_ns) {
        return;
    }
    qp_lock_event_row *rows = qp_first_row(QP_LOCK_EVENT_ROWS), *shortest = rows;
    for (uint32_t i = 1; i < LONGEST; i++) {
        shortest = rows[i].duration_ns < shortest->duration_ns ? &rows[i] : shortest;
    }
    full_table.least_ns = shortest->duration_ns;
    if (event->duration_ns > shortest->duration_ns) {
        *shortest = *event;
    }
}

/* Returns a row for a new event: a new row, or the row of the oldest of the newest events; NULL if
 * there is no memory. */
static qp_lock_event_row *event_row(void)
{
    qp_lock_event_row *rows = qp_first_row(QP_LOCK_EVENT_ROWS);
    if (qp_row_count(QP_LOCK_EVENT_ROWS) < QP_LOCK_EVENTS) {
        full_table.oldest = LONGEST;
        full_table.least_ns = 0;
        uint32_t added = qp_rows_add(QP_LOCK_EVENT_ROWS, 1);
        return added == UINT32_MAX ? NULL : &rows[added];
    }
    qp_lock_event_row *row = &rows[full_table.oldest];
    keep_if_long(row);
    full_table.oldest++;
    if (full_table.oldest == QP_LOCK_EVENTS) {
        full_table.oldest = LONGEST;
    }
    return row;
}

void qp_lock_event_add(const qp_lock *lock, const qp_lock_time *when)
{
    int64_t duration_ns = qp_ticks_to_ns(qp_elapsed_ticks(when->start_ticks, when->end_ticks));
    qp_lock_event_row *place = duration_ns < NOTABLE_NS ? NULL : event_row();
    if (place) {
        *place = (qp_lock_event_row){.lock = *lock,
                                     .connection = when->connection,
                                     .writes = when->writes,
                                     .start_unix_ns = qp_ticks_to_unix_ns(when->start_ticks),
                                     .duration_ns = duration_ns};
    }
}
