/* Chooses the line to watch: a line of the program that executes a statement through a library.
 * Each line is watched during some of its executions.
 *
 * A line is watched for some passes. The number of executions until the line is watched again
 * doubles each time. Lines with few timed passes come first. Watches take a small part of the time.
 * If a library executes a statement in a loop of its own, the library's function inside that loop
 * is watched. On Python 3.11 no line is watched.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"
#include "threads/threads.h"

enum { QP_SEEN_BITS = 12 };

/* By hash of a statement and path: whether the pair was executed before. */
extern uint8_t qp_lines_seen[1 << QP_SEEN_BITS];

static inline uint8_t *qp_line_seen_flag(uint32_t statement, uint32_t path)
{
    uint32_t hash = (statement * 0x9E3779B1U) ^ (path * 0x85EBCA6BU); /* Knuth; MurmurHash3 */
    return &qp_lines_seen[hash >> (32 - QP_SEEN_BITS)];
}

/* Returns whether an execution may be the first (and perhaps the only) execution of its statement
 * and path, or whether its line was timed in few passes. */
static inline bool qp_line_is_new(uint32_t statement, uint32_t path)
{
#if PY_VERSION_HEX >= 0x030C0000
    uint8_t *seen = qp_line_seen_flag(statement, path);
    bool is_new = !*seen;
    *seen = 1;
    return is_new;
#else
    (void)statement, (void)path;
    return false;
#endif
}

/* Considers whether to watch the line that executes a statement. `from_ticks` is the start of the
 * execution; `thread` is the running thread. Call this function after a driver's call has ended,
 * when the call's data is no longer used: audit hooks of the program may run. Raises nothing. */
void qp_line_consider_watch(const qp_thread *thread, const qp_key *key, uint64_t from_ticks);

/* Considers whether to watch the line that submits work to another thread, because the work may
 * execute a statement. Returns the number of the pass in progress to which the work belongs; 0 if
 * no pass is in progress. */
uint64_t qp_line_consider_submission(qp_thread *thread, uint32_t path);

/* Ends the watch, and clears the cost of this recording's watches. */
void qp_line_choice_clear(void);

/* In a forked child: drops the parent's timed passes. */
void qp_line_choice_after_fork(void);
