/* The timeline: database work by the wall clock, in at most 512 intervals that coarsen as the
 * run grows. Intervals are powers of two of nanoseconds and aligned to the epoch, so that the
 * timelines of different processes add up exactly.
 */
#ifndef QP_TIMELINE_H
#define QP_TIMELINE_H

#include <Python.h>
#include <stdint.h>

enum { QP_TIMELINE_INTERVALS = 512 };

/* Forgets everything; the first interval is the one that `unix_ns` lies in. */
void qp_timeline_start(int64_t unix_ns);

/* Adds calls that ended about `unix_ns`. */
void qp_timeline_add(int64_t unix_ns, int64_t calls, int64_t rows, int64_t self_ns);

/* Empties the sums into a new (width_ns, [(start_unix_ns, calls, rows, self_ns), ...]); NULL
 * with an exception. */
PyObject *qp_timeline_take(void);

#endif
