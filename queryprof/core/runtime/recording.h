/* The current recording: its number, and queryprof's own time so far. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/compiler.h"

/* The number of the current recording; 0 if none. */
extern uint32_t qp_recording;

/* queryprof's own time in ticks. The time is measured for rare work (scans of texts, requests for
 * plans, lookups of statements), for periodic work, and for 1 of QP_OWN_SAMPLING calls, which
 * represents all of these calls. QP_OWN_SAMPLING is prime, so that the sampling is not in step with
 * the work that is done for 16 calls together. The caller must hold the GIL. */
extern int64_t qp_own_ticks;
enum { QP_OWN_SAMPLING = 61, QP_OWN_LAST = 9 };

/* Number of calls until the next measured call. */
extern uint32_t qp_own_countdown;

/* Returns whether the cost of this call is measured. */
static QP_INLINE bool qp_own_time_is_measured(void)
{
    bool is_due = --qp_own_countdown == 0;
    if (is_due) {
        qp_own_countdown = QP_OWN_SAMPLING;
    }
    return is_due;
}

/* A ring of the last samples of one part of a call, and the number of all samples. The median
 * represents each sample, because the machine may have interrupted a sample for a long time. */
typedef struct {
    int64_t ticks[QP_OWN_LAST];
    uint32_t count;
} qp_own_samples;

extern qp_own_samples qp_own_begins, qp_own_ends, qp_own_counters;

/* A measured part of a call: the beginning, the end, or the reading of counters. */
typedef struct {
    uint64_t from_ticks;
    int64_t own_ticks; /* qp_own_ticks at the start of the part, so that time that is already
                        * counted is not added again */
} qp_own_part;

qp_own_part qp_own_part_begin(void);
void qp_own_part_end(qp_own_samples *samples, qp_own_part part, uint64_t now_ticks);

/* Clears queryprof's own time for a new recording. */
void qp_own_time_clear(void);
