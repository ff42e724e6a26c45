/* Recording as a whole: starts, stops and empties all tables together. */
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

/* Flushes data in flight to the tables, before they are read. */
void qp_recorder_flush(void);

/* The same for a recording that is about to end. It also flushes the calls of an unfinished watch,
 * for which it is unknown whether the program's own code runs in them. */
void qp_recorder_flush_last(void);

/* Writes the recording so far to a separate file, and empties the sums. Returns false, and keeps
 * the sums, if the file cannot be written. */
bool qp_recorder_end_part(void);

/* The same at the end of a window, at this Unix time. If the part cannot be written, a message
 * reports that once, and the next window end retries. */
void qp_recorder_end_window(int64_t unix_ns);

/* Clears the recording so far. */
void qp_recorder_clear(void);
