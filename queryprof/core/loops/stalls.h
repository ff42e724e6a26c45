/* Stalls: steps that blocked a loop for at least a threshold, by function and by the call path
 * where the watchdog saw them. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "loops/step.h"

/* Counts a step that has run for `ns`, or adds its time since the last flush. `ended`: the step has
 * ended, so the callbacks that it delayed are counted as well. */
void qp_stall_flush(qp_step *step, int64_t ns, bool ended);

/* Returns whether an object among a loop's timers is a timer of the program that is not cancelled.
 * If so, sets its due time in seconds of the monotonic clock. */
typedef bool qp_timer_reader(PyObject *timer, double *due_s);

/* Returns whether a callback of a loop is queryprof's own. Runs no code of the program. */
typedef bool qp_callback_finder(PyObject *handle);

/* Sets the functions that read timers and callbacks. */
void qp_stalls_set_readers(qp_timer_reader *is_due, qp_callback_finder *is_own);

/* Counts the stalls in progress up to now. */
void qp_stalls_flush(void);

/* Clears the sums. */
void qp_stalls_clear(void);
