/* Executions that go on when the sums are emptied at the end of a window: they are carried over, so
 * that each is in a distribution of durations once, with all its time, where it ends. */
#pragma once

/* Removes unfinished executions from the distributions; all executions must be flushed. An
 * execution is unfinished if it has a call in progress, or a cursor whose statement SQLite still
 * runs. */
void qp_executions_take_out(void);

/* Puts them in again, as the aggregates are now. */
void qp_executions_put_in(void);
