/* Times the program's own lines that execute statements through a library: one line at a time, and
 * some passes of it.
 *
 * A pass lasts from the start of the line to the start of the next line of the same frame, or to
 * its end, with all that it calls: an object mapper builds the statement, makes objects of the rows
 * and commits. While a generator or coroutine is suspended, the time does not count.
 *
 * CPython reports the lines of one code object by sys.monitoring (PEP 669, Python 3.12 and later).
 * Its other code runs as before, and this code does once the events are removed. A free tool
 * number is used while a line is watched. On Python 3.11 no line is timed.
 */
#pragma once

#include <Python.h>

#include "calls/call.h"

enum { QP_SEEN_BITS = 12 };

/* By hash: whether a statement and path was executed before. */
extern uint8_t qp_lines_seen[1 << QP_SEEN_BITS];

/* Whether an execution may be the first of its statement and path, and so perhaps the only one. */
static inline bool qp_line_is_new(uint32_t statement, uint32_t path)
{
#if PY_VERSION_HEX >= 0x030C0000
    uint32_t hash = (statement * 0x9E3779B1U) ^ (path * 0x85EBCA6BU); /* Knuth; MurmurHash3 */
    uint8_t *seen = &qp_lines_seen[hash >> (32 - QP_SEEN_BITS)];
    bool is_new = !*seen;
    *seen = 1;
    return is_new;
#else
    (void)statement, (void)path;
    return false;
#endif
}

/* Begins to watch the line that executes a statement, unless another line is watched, or this one
 * was timed often enough. `from_ticks` is when the execution began. `thread` is the running one.
 * Call it when a driver's call has ended and nothing of it is used any more: audit hooks of the
 * program may run. Raises nothing. */
void qp_line_watch(const qp_thread *thread, const qp_key *key, uint64_t from_ticks);

/* The same for the line that submits work to another thread, which may execute a statement. Returns
 * the number of the pass in progress, which the work belongs to; 0: there is none. */
uint64_t qp_line_watch_submission(const qp_thread *thread, uint32_t path);

/* Notes an execution while a line is watched. */
void qp_line_note(const qp_call *call);

/* Removes the events. Audit hooks of the program may run. */
void qp_line_watch_stop(void);

/* Removes the events, and forgets what the watches of this recording have cost. */
void qp_line_watch_clear(void);

/* In a forked child: drops what the parent has timed. */
void qp_line_watch_after_fork(void);
