/* Steps: uninterrupted work of an event loop, such as a callback, or a task from one await to the
 * next. The sums are kept by function. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "loops/step.h"

/* Returns a step to begin; NULL if out of memory. The caller owns the step, and must release it
 * with qp_step_release after its end. Steps are never on the C stack, because a greenlet that the
 * step switches to may move that stack away. */
qp_step *qp_step_reserve(void);
void qp_step_release(qp_step *step);

/* Begins a step in a running loop. `identity` is the address of the running function; `keeper` (may
 * be NULL) keeps that address from being reused. `what` is the code object of the function, or the
 * callable if there is no code object. */
void qp_step_begin(qp_step *step, qp_running_loop *running_loop, const void *identity,
                   PyObject *keeper, PyObject *what);

/* Begins a substitute step for a loop whose real steps queryprof cannot see. The substitute starts
 * at `due_ticks`, when the next heartbeat is due, and ends with that heartbeat. */
void qp_step_begin_unseen(qp_step *step, qp_running_loop *running_loop, uint64_t due_ticks);

/* Ends the step. Preserves the current exception. */
void qp_step_end(qp_step *step);

/* Adds a driver call to the step. If steps cannot be seen, a call that ended before the heartbeat
 * was due did not delay the heartbeat. A call that ended later has blocked the loop since the start
 * of the call. */
static inline void qp_step_add_driver_call(qp_step *step, uint32_t statement, uint32_t path,
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

/* Samples the call path of the step with this number, if the step is still running and is a stall.
 * The watchdog requested the GIL at `asked_ticks`, and the loop's thread worked for `gil_ns` before
 * it released the GIL. The caller must hold the GIL. */
void qp_step_sample(qp_running_loop *running_loop, uint64_t number, uint64_t asked_ticks,
                    int64_t gil_ns);

/* Clears the sums. The functions keep their rows. */
void qp_steps_clear(void);

/* Allocates the table. Returns false if out of memory. */
bool qp_steps_start(void);
void qp_steps_stop(void);
