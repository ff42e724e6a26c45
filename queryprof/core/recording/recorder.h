/* Recording as a whole: starts, stops and empties all tables together. */
#ifndef QP_RECORDING_RECORDER_H
#define QP_RECORDING_RECORDER_H

#include <Python.h>
#include <stdbool.h>

/* Allocates everything and starts recording; -1 with an exception without memory. */
int qp_recorder_start(void);

/* Stops recording and gives everything back. */
void qp_recorder_stop(void);

bool qp_recorder_is_on(void);

/* Forgets what was recorded, in a forked child: it is the parent's. */
void qp_recorder_after_fork(void);

/* Brings what is in flight to the tables, before they are read. */
void qp_recorder_flush(void);

/* Writes what was recorded up to now to a file of its own, and empties the sums; false: it cannot
 * be written, and they stay. */
bool qp_recorder_end_part(void);

/* Forgets what was recorded up to now. */
void qp_recorder_clear(void);

#endif
