/* Stalls: steps that kept a loop standing still for longer than a threshold, by what ran and where
 * it was seen. */
#ifndef QP_LOOPS_STALLS_H
#define QP_LOOPS_STALLS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "loops/step.h"

/* Counts a step that has run for so long, or what it has run on since it was last settled.
 * `ended`: it is over, and what it kept waiting can be told. */
void qp_stall_flush(qp_step *step, int64_t ns, bool ended);

/* Whether an object among a loop's timers is one of the program's that has not been cancelled;
 * then when it is due, in seconds of the monotonic clock. */
typedef bool qp_timer_is_due(PyObject *timer, double *due_s);

/* Says how to look into timers. */
void qp_stalls_use_timers(qp_timer_is_due *is_due);

/* Brings the stalls that are in progress up to now. */
void qp_stalls_flush(void);

/* Drops what was added up. */
void qp_stalls_clear(void);

#endif
