/* Stalls: steps that kept a loop standing still for longer than a threshold, by what ran and where
 * it was seen. */
#ifndef QP_STALLS_H
#define QP_STALLS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "steps.h"

/* Counts a step that has run for so long, or what it has run on since it was last settled.
 * `ended`: it is over, and what it kept waiting can be told. */
void qp_stall_settle(qp_step *step, int64_t ns, bool ended);

/* Whether an object among a loop's timers is one of the program's that has not been cancelled;
 * then when it is due, in seconds of the monotonic clock. */
typedef bool qp_timer_is_due(PyObject *timer, double *due_s);

/* Says how to look into timers. */
void qp_stalls_know_timers(qp_timer_is_due *is_due);

/* Brings the stalls that are in progress up to now. */
void qp_stalls_settle(void);

/* Empties the table into a new list of tuples (see _core.pyi); NULL with an exception. */
PyObject *qp_stalls_take(void);

/* Drops what was kept. */
void qp_stalls_forget(void);

/* Allocates the table; false without memory. */
bool qp_stalls_start(void);
void qp_stalls_stop(void);

#endif
