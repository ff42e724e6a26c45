/* Steps: uninterrupted work of an event loop: a callback, or a task from one await to the next.
 * Added up by function. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "loops/step.h"

/* A step to begin, which the caller releases after its end; NULL if out of memory. Never on the C
 * stack: a greenlet that the step switches to may move its caller's stack away. */
qp_step *qp_step_reserve(void);
void qp_step_release(qp_step *step);

/* Begins a step in a running loop. `identity` is the address of the running function; `keeper` (may
 * be NULL) keeps that address from being reused. `what` is the code object, or the callable if it
 * has none. */
void qp_step_begin(qp_step *step, qp_running_loop *running_loop, const void *identity,
                   PyObject *keeper, PyObject *what);

/* Begins a time in which a loop's steps cannot be seen; a heartbeat is due at `due_ticks`. */
void qp_step_await_beat(qp_step *step, qp_running_loop *running_loop, uint64_t due_ticks);

/* Ends the step; keeps the exception that is set. */
void qp_step_end(qp_step *step);

/* Adds a driver call to the step. Without visible steps, a call that ended before the heartbeat was
 * due did not delay it; a call that ended later has blocked the loop since its own start. */
static inline void qp_step_database(qp_step *step, uint32_t statement, uint32_t path,
                                    uint64_t from_ticks, int64_t ticks)
{
    if (from_ticks < step->start_ticks) {
        /* A call that began before a visible step has not blocked all of it: a greenlet of
         * SQLAlchemy was suspended in the call. */
        if (step->sums || from_ticks + (uint64_t)ticks <= step->start_ticks) {
            return;
        }
        step->start_ticks = from_ticks;
    }
    qp_step_queries_add(&step->causes, statement, path, 1, ticks);
}

/* Samples where the step of this number is, if it still runs and is a stall; `asked_ticks` is when
 * the GIL was requested, `gil_ns` for how long its thread kept that. The caller must hold the GIL.
 */
void qp_step_sample(qp_running_loop *running_loop, uint64_t number, uint64_t asked_ticks,
                    int64_t gil_ns);

/* Clears the sums; the functions that ran stay. */
void qp_steps_clear(void);

/* Allocates the table. Returns false if out of memory. */
bool qp_steps_start(void);
void qp_steps_stop(void);
