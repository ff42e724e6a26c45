/* Keeps the timed passes of a line (see line_watch.h), and the executions in each pass, until they
 * are added to the rows of the statements. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* Forgets all passes. */
void qp_line_passes_clear(void);

/* Counts an execution in the pass in progress. `key` is NULL for an execution by another line, in a
 * function that the watched line calls. */
void qp_line_passes_add_execution(const qp_key *key);

/* Sets the number of rows that were fetched so far from an execution in the pass. */
void qp_line_passes_set_rows(const qp_key *key, int64_t rows);

/* Returns how often the pass in progress has executed a statement and path. */
int64_t qp_line_passes_execution_count(const qp_key *key);

/* Returns whether the pass in progress has executed anything. */
bool qp_line_passes_has_executed(void);

/* Returns whether a pass without executions is added to the previous pass, because a loop over a
 * query's rows passes its line for each row. */
bool qp_line_passes_are_joined(void);

/* Ends the pass in progress, or joins it to the previous pass. `is_partial` means that the start of
 * the pass was not seen. Returns true if there is no room for more passes. */
bool qp_line_passes_end_current(int64_t ns, bool is_partial);

/* Marks the next pass as the first of another call of the function, so that the pass is not joined
 * to the previous pass. */
void qp_line_passes_begin_call(void);

/* Forgets the executions in the pass in progress. */
void qp_line_passes_forget_current(void);

/* Adds the ended passes to the rows. For each statement and path, the longest passes do not count,
 * and passes whose start was not seen count only if there are no other passes. The row also stores
 * the duration of the longest pass that does not count. */
void qp_line_passes_flush(void);
