/* The newest calls of the process, in a ring: what the process did last, also after it was killed.
 * A call without a place in the ring has QP_NO_RECENT_CALL. */
#pragma once

#include <stdint.h>

#include "memory/tables.h"

enum { QP_NO_RECENT_CALL = UINT16_MAX + 1 };

/* Sets the number of calls to keep, which is rounded up to a multiple of 64: at most
 * QP_RECENT_CALLS; 0 for none. */
void qp_recent_calls_configure(uint32_t capacity);

/* Adds a call to the ring, in the place of the oldest if the ring is full. `aggregate` is the
 * number of its row in the aggregates. Returns the place of the call in the ring. */
uint32_t qp_recent_call_add(uint64_t started_ticks, int64_t duration_ns, uint32_t aggregate);

/* Changes the duration of a call, unless newer calls have taken its place. */
void qp_recent_call_lengthen(uint32_t place, uint64_t started_ticks, int64_t duration_ns);

/* Marks a call as failed, unless newer calls have taken its place. */
void qp_recent_call_mark_failed(uint32_t place, uint64_t started_ticks);

/* Empties the ring. */
void qp_recent_calls_clear(void);
