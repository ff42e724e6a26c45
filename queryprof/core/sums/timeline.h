/* The timeline: database work by the wall clock, in at most 512 intervals that coarsen as the
 * run grows. Intervals are powers of two of nanoseconds and aligned to the epoch, so that the
 * timelines of different processes add up exactly.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Clears the timeline; the first interval is the one that `unix_ns` lies in. False without room. */
bool qp_timeline_start(int64_t unix_ns);

/* Adds calls of one thread that ended at an instant, and took `duration_ns` from the first one's
 * beginning, `self_ns` of it in the driver: that is spread over the intervals in between. */
void qp_timeline_add(int64_t end_unix_ns, int64_t duration_ns, int64_t calls, int64_t rows,
                     int64_t self_ns);
