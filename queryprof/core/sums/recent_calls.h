/* The newest calls of the process, in a ring buffer. They show what the process did last, even
 * after it was killed. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "memory/execution_row.h"
#include "memory/region.h"
#include "memory/sampled_row.h"
#include "runtime/compiler.h"

enum { QP_NO_RECENT_CALL = UINT16_MAX + 1 };

/* The row number of the next call. It may be one past the last row of the ring. */
extern uint32_t qp_next_recent_call;

/* Sets the number of calls to keep, which is rounded up to a multiple of 64: at most
 * QP_RECENT_CALLS; 0 for none. */
void qp_recent_calls_configure(uint32_t calls);

/* Returns the place of the next call if the ring has no row for it: adds rows, or begins again with
 * the first row if the ring is full. */
uint32_t qp_recent_calls_grow_or_wrap(void);

/* Returns the row of a call; NULL if newer calls have taken its place. */
static inline qp_recent_call_row *qp_recent_call(uint32_t place, uint64_t started_ticks)
{
    qp_recent_call_row *row = (qp_recent_call_row *)qp_first_row(QP_RECENT_CALL_ROWS) + place;
    return place < qp_row_count(QP_RECENT_CALL_ROWS) && row->started_ticks == started_ticks ? row
                                                                                            : NULL;
}

/* Adds a new call to the ring, in the place of the oldest call if the ring is full. If the call is
 * not new, changes its duration instead, unless a newer call has taken its place. */
static inline void qp_recent_call_settle(qp_execution *e, bool is_new)
{
    qp_recent_call_row *rows = qp_first_row(QP_RECENT_CALL_ROWS);
    if (!is_new) {
        qp_recent_call_row *row = qp_recent_call(e->recent_call, e->started_ticks);
        if (row) {
            row->duration_ns = (float)e->duration_ns;
        }
        return;
    }
    uint32_t place = qp_next_recent_call;
    if (place >= qp_row_count(QP_RECENT_CALL_ROWS)) {
        place = qp_recent_calls_grow_or_wrap();
        if (place == QP_NO_RECENT_CALL) {
            return;
        }
    }
    qp_next_recent_call = place + 1;
    e->recent_call = place;
    rows[place].started_ticks = 0; /* readers skip the row meanwhile */
    atomic_thread_fence(memory_order_release);
    rows[place].duration_ns = (float)e->duration_ns;
    rows[place].aggregate = e->began_row;
    qp_release_store(&rows[place].started_ticks, e->started_ticks);
}

/* Marks a call as failed, unless newer calls have taken its place. */
void qp_recent_call_mark_failed(uint32_t place, uint64_t started_ticks);

/* Empties the ring. */
void qp_recent_calls_clear(void);
