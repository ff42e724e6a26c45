/* What an event of sys.monitoring costs. In long code it may take 50 us instead of 40 ns, because
 * CPython then searches its table of lines for each event. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Forgets the measurements: other code is watched. */
void qp_event_cost_clear(void);

/* Notes the end of a jump event. A backward jump leads directly to the event of a line. */
void qp_event_cost_after_jump(bool is_backward);

/* Notes the start of a line event. `is_watched`: the line is the watched one. Only then the jump
 * has led to it, and did not stay in a comprehension. */
void qp_event_cost_at_line(bool is_watched);

/* The shortest time from a backward jump to its line; 0 if unknown. */
int64_t qp_event_cost_ticks(void);

/* The time of a number of events (nanoseconds). */
int64_t qp_event_cost_ns(int events);

/* Whether this number of events has cost too much for one watch. */
bool qp_event_cost_is_high(int events);

/* Whether an event takes as long as a row of a loop, whose time is then unknown. */
bool qp_event_cost_is_long(void);
