/* Steps: what an event loop runs without a break, a callback or a task's way from one await to the
 * next; by what was run. */
#ifndef QP_LOOPS_STEPS_H
#define QP_LOOPS_STEPS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "loops/step.h"

/* A step to begin, for the caller to give back after its end; NULL: no memory. Never on the C
 * stack: a greenlet that the step goes on with may move its caller's stack away. */
qp_step *qp_step_reserve(void);
void qp_step_release(qp_step *step);

/* A step begins in a running_loop. `identity` tells what runs from what else runs, and is kept from
 * meaning another thing by `keeper` (may be NULL); `what` is the code object, or the callable that
 * has none. */
void qp_step_begin(qp_step *step, qp_running_loop *running_loop, const void *identity,
                   PyObject *keeper, PyObject *what);

/* A span of time in which a loop's steps cannot be seen begins; a heartbeat is due then. */
void qp_step_await_beat(qp_step *step, qp_running_loop *running_loop, uint64_t due_ticks);

/* The step ends; keeps the exception that is set. */
void qp_step_end(qp_step *step);

/* Notes a call of the driver in the step. */
static inline void qp_step_database(qp_step *step, uint32_t statement, uint32_t path, int64_t ticks)
{
    qp_step_queries_add(&step->causes, statement, path, 1, ticks);
    step->longest_ticks = ticks > step->longest_ticks ? ticks : step->longest_ticks;
}

/* Notes where the step of this number is in a running_loop, if it still runs and is a stall;
 * `asked_ticks` is when the GIL was asked for. With the GIL. */
void qp_step_sample(qp_running_loop *running_loop, uint64_t number, uint64_t asked_ticks);

/* Drops what was added up; what ran stays known. */
void qp_steps_clear(void);

/* Allocates the table; false without memory. */
bool qp_steps_start(void);
void qp_steps_stop(void);

#endif
