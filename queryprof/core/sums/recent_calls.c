#include "sums/recent_calls.h"

#include <stdatomic.h>

#include "memory/region.h"
#include "memory/sampled_row.h"
#include "runtime/compiler.h"

enum { ADDED_ROWS = 64 /* at once, because adding rows costs more than using them */ };

static uint32_t capacity = QP_RECENT_CALLS;
static uint32_t next; /* place of the next call; behind the last row if the ring still grows */

static qp_recent_call_row *recent_calls(void)
{
    return qp_first_row(QP_RECENT_CALL_ROWS);
}

void qp_recent_calls_configure(uint32_t calls)
{
    uint32_t wanted = calls < QP_RECENT_CALLS ? calls : QP_RECENT_CALLS;
    capacity = (wanted + ADDED_ROWS - 1) / ADDED_ROWS * ADDED_ROWS;
}

/* Adds rows to the ring, or begins again with its first row if it is full. Returns the place of the
 * next call. */
static QP_COLD uint32_t grow_or_begin_again(void)
{
    /* Sums were cleared or the process was forked if the ring has fewer rows than before. */
    uint32_t count = qp_row_count(QP_RECENT_CALL_ROWS);
    bool is_full = count >= capacity || qp_rows_add(QP_RECENT_CALL_ROWS, ADDED_ROWS) == UINT32_MAX;
    if (is_full) {
        return count ? 0 : QP_NO_RECENT_CALL;
    }
    return count;
}

uint32_t qp_recent_call_add(uint64_t started_ticks, int64_t duration_ns, uint32_t aggregate)
{
    uint32_t place = next;
    if (place >= qp_row_count(QP_RECENT_CALL_ROWS)) {
        place = grow_or_begin_again();
        if (place == QP_NO_RECENT_CALL) {
            return place;
        }
    }
    next = place + 1;
    qp_recent_call_row *call = &recent_calls()[place];
    call->started_ticks = 0; /* readers skip the row meanwhile */
    atomic_thread_fence(memory_order_release);
    call->duration_ns = (float)duration_ns;
    call->aggregate = aggregate;
    qp_release_store(&call->started_ticks, started_ticks);
    return place;
}

/* Returns a call's row; NULL if newer calls have taken its place. */
static qp_recent_call_row *row_of(uint32_t place, uint64_t started_ticks)
{
    bool is_there = place < qp_row_count(QP_RECENT_CALL_ROWS) &&
                    recent_calls()[place].started_ticks == started_ticks;
    return is_there ? &recent_calls()[place] : NULL;
}

void qp_recent_call_lengthen(uint32_t place, uint64_t started_ticks, int64_t duration_ns)
{
    qp_recent_call_row *row = row_of(place, started_ticks);
    if (row) {
        row->duration_ns = (float)duration_ns;
    }
}

void qp_recent_call_mark_failed(uint32_t place, uint64_t started_ticks)
{
    qp_recent_call_row *row = row_of(place, started_ticks);
    if (row) {
        row->duration_ns = -(row->duration_ns > 1 ? row->duration_ns : 1);
    }
}

void qp_recent_calls_clear(void)
{
    qp_rows_clear(QP_RECENT_CALL_ROWS);
    next = 0;
}
