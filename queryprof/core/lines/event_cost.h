/* What an event of sys.monitoring costs. Far below the first line of long code it may take 50 us
 * instead of 40 ns, because CPython then searches its table of lines for each event. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Measures how long CPython searches for a line of a code object. `line` is 0 if all calls of the
 * code object are watched. Raises nothing. */
void qp_event_cost_measure(PyCodeObject *code, int line);

/* The time of a number of events (nanoseconds). */
int64_t qp_event_cost_ns(int events);

/* Whether this number of events has cost too much for one watch. */
bool qp_event_cost_is_high(int events);

/* Whether an event takes as long as a row of a loop, whose time is then unknown. */
bool qp_event_cost_is_long(void);
