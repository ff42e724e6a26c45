/* Executions that continue when the sums are emptied at the end of a window. They are carried over
 * into the next window. So each execution is counted in one distribution, in the window in which it
 * ends, with its total duration. */
#pragma once

/* Removes unfinished executions from the distributions; all executions must be flushed. An
 * execution is unfinished if it has a call in progress, or a cursor whose statement SQLite still
 * runs. */
void qp_unfinished_executions_remove(void);

/* Adds the removed executions to the distributions again, after the aggregates were emptied. */
void qp_unfinished_executions_restore(void);
