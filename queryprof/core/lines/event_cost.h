/* The cost of an event of sys.monitoring. Far below the first line of a long function, an event may
 * take 50 us instead of 40 ns, because CPython searches its table of lines for each event. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Measures how long CPython searches for a line of a code object. `line` is 0 if all calls of the
 * code object are watched. Raises nothing. */
void qp_event_cost_measure(PyCodeObject *code, int line);

/* Returns the time that this number of events takes, in nanoseconds. */
int64_t qp_event_cost_ns(int events);

/* Returns whether this number of events has cost too much for one watch. */
bool qp_event_cost_is_high(int events);

/* Returns whether an event takes as long as a row of a loop. The time of the row is then
 * unknown. */
bool qp_event_cost_is_long(void);
