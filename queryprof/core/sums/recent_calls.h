/* The newest calls of the process, in a ring: what the process did last, also after it was killed.
 * A call without a place in the ring has the place QP_NO_RECENT_CALL. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "memory/region.h"
#include "memory/sampled_row.h"
#include "runtime/compiler.h"

enum { QP_NO_RECENT_CALL = UINT16_MAX + 1 };

/* The place of the next call. It may be behind the last row of the ring. */
extern uint32_t qp_next_recent_call;

/* Sets the number of calls to keep, which is rounded up to a multiple of 64: at most
 * QP_RECENT_CALLS; 0 for none. */
void qp_recent_calls_configure(uint32_t calls);

/* Returns the place of the next call if the ring has no row for it: adds rows, or begins again with
 * the first row if the ring is full. */
uint32_t qp_recent_calls_grow_or_turn(void);

/* Returns the row of a call; NULL if newer calls have taken its place. */
static inline qp_recent_call_row *qp_recent_call(uint32_t place, uint64_t started_ticks)
{
    qp_recent_call_row *row = (qp_recent_call_row *)qp_first_row(QP_RECENT_CALL_ROWS) + place;
    return place < qp_row_count(QP_RECENT_CALL_ROWS) && row->started_ticks == started_ticks ? row
                                                                                            : NULL;
}

/* Adds a call to the ring, in the place of the oldest call if the ring is full. `aggregate` is the
 * number of its row in the aggregates. Returns its place in the ring. */
static inline uint32_t qp_recent_call_add(uint64_t started_ticks, int64_t duration_ns,
                                          uint32_t aggregate)
{
    uint32_t place = qp_next_recent_call;
    if (place >= qp_row_count(QP_RECENT_CALL_ROWS)) {
        place = qp_recent_calls_grow_or_turn();
        if (place == QP_NO_RECENT_CALL) {
            return place;
        }
    }
    qp_next_recent_call = place + 1;
    qp_recent_call_row *row = (qp_recent_call_row *)qp_first_row(QP_RECENT_CALL_ROWS) + place;
    row->started_ticks = 0; /* readers skip the row meanwhile */
    atomic_thread_fence(memory_order_release);
    row->duration_ns = (float)duration_ns;
    row->aggregate = aggregate;
    qp_release_store(&row->started_ticks, started_ticks);
    return place;
}

/* Changes the duration of a call, unless newer calls have taken its place. */
static inline void qp_recent_call_lengthen(uint32_t place, uint64_t started_ticks,
                                           int64_t duration_ns)
{
    qp_recent_call_row *row = qp_recent_call(place, started_ticks);
    if (row) {
        row->duration_ns = (float)duration_ns;
    }
}

/* Marks a call as failed, unless newer calls have taken its place. */
void qp_recent_call_mark_failed(uint32_t place, uint64_t started_ticks);

/* Empties the ring. */
void qp_recent_calls_clear(void);
