/* The timeline: database work by the wall clock, in at most 512 intervals that become wider as the
 * run grows. Intervals are powers of two of nanoseconds and aligned to the epoch, so that the
 * timelines of different processes add up exactly. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Clears the timeline. The first interval contains `unix_ns`. Returns false if the region is
 * full. */
bool qp_timeline_start(int64_t unix_ns);

/* Must be called after the clock's calibration, because instants may now belong to other
 * intervals. */
void qp_timeline_apply_calibration(void);

/* Adds calls of one thread that ran between two instants. The driver took `self_ns` of that time,
 * which is distributed over the intervals between the instants. */
void qp_timeline_add(uint64_t from_ticks, uint64_t to_ticks, int64_t calls, int64_t rows,
                     int64_t self_ns);
