/* Starts, stops and empties all tables of a recording together. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Allocates everything and starts recording. Returns -1 with an exception if out of memory. */
int qp_recorder_start(void);

/* Stops recording and frees everything. */
void qp_recorder_stop(void);

bool qp_recorder_is_on(void);

/* In a forked child: clears the parent's recording. */
void qp_recorder_after_fork(void);

/* Flushes data that is not in the tables yet. Must be called before tables are read. */
void qp_recorder_flush(void);

/* Like qp_recorder_flush, for a recording that is about to end: also flushes the passes of an
 * unfinished line watch. */
void qp_recorder_flush_at_end(void);

/* Writes the recording so far to a separate file, and empties the sums. Returns false, and keeps
 * the sums, if the file cannot be written. */
bool qp_recorder_end_part(void);

/* Like qp_recorder_end_part, at the end of a window, at this Unix time. If the part cannot be
 * written, prints a message once, and keeps the sums until the end of the next window. */
void qp_recorder_end_window(int64_t unix_ns);

/* Clears the recording so far. */
void qp_recorder_clear(void);
