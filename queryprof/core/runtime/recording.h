/* The present recording: its number, and its cost so far. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/compiler.h"

/* The number of the present recording; 0 if none. */
extern uint32_t qp_recording;

/* queryprof's own time in ticks. It is measured on new things (scans of texts, requests of plans,
 * lookups of statements), on turns, and on 1 of QP_OWN_SAMPLING calls, which represents all. The
 * number is prime, so that it is not in step with work that is done for 16 calls together. The
 * caller must hold the GIL. */
extern int64_t qp_own_ticks;
enum { QP_OWN_SAMPLING = 61, QP_OWN_LAST = 9 };

/* Calls until one whose cost is measured. */
extern uint32_t qp_own_countdown;

/* Returns whether the cost of this call is measured. */
static QP_INLINE bool qp_own_is_due(void)
{
    bool is_due = --qp_own_countdown == 0;
    if (is_due) {
        qp_own_countdown = QP_OWN_SAMPLING;
    }
    return is_due;
}

/* The last samples of one kind of part, a ring, and how many there were. Their median counts for
 * each: the machine may have interrupted one of them for long. */
typedef struct {
    int64_t ticks[QP_OWN_LAST];
    uint32_t count;
} qp_own_samples;

extern qp_own_samples qp_own_begins, qp_own_ends, qp_own_counters;

/* A part of such a call. */
typedef struct {
    uint64_t from_ticks;
    int64_t own_ticks; /* qp_own_ticks at its beginning: time measured in it is not added again */
} qp_own_part;

qp_own_part qp_own_part_begin(void);
void qp_own_part_end(qp_own_samples *samples, qp_own_part part, uint64_t now_ticks);

/* A new recording begins. */
void qp_own_begin(void);
