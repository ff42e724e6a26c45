#include "sums/recent_calls.h"

enum { ADDED_ROWS = 64 /* at once, because adding rows costs more than using them */ };

uint32_t qp_next_recent_call;

static uint32_t capacity = QP_RECENT_CALLS;

void qp_recent_calls_configure(uint32_t calls)
{
    uint32_t wanted = calls < QP_RECENT_CALLS ? calls : QP_RECENT_CALLS;
    capacity = (wanted + ADDED_ROWS - 1) / ADDED_ROWS * ADDED_ROWS;
}

QP_COLD uint32_t qp_recent_calls_grow_or_wrap(void)
{
    /* After a fork, or after the sums were cleared, the ring has fewer rows than before. */
    uint32_t count = qp_row_count(QP_RECENT_CALL_ROWS);
    if (count < capacity && qp_rows_add(QP_RECENT_CALL_ROWS, ADDED_ROWS) != UINT32_MAX) {
        return count;
    }
    return count ? 0 : QP_NO_RECENT_CALL;
}

void qp_recent_call_mark_failed(uint32_t place, uint64_t started_ticks)
{
    qp_recent_call_row *row = qp_recent_call(place, started_ticks);
    if (row) {
        row->duration_ns = -(row->duration_ns > 1 ? row->duration_ns : 1);
    }
}

void qp_recent_calls_clear(void)
{
    qp_rows_clear(QP_RECENT_CALL_ROWS);
    qp_next_recent_call = 0;
}
