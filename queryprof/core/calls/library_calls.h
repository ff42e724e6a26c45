/* The calls of a library's function that were timed, with what was executed in each, until they are
 * added to the rows of the statements.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* From so many calls on a statement and path is known. */
enum { QP_LIBRARY_CALLS_ENOUGH = 32 };

/* Forgets all. */
void qp_library_calls_clear(void);

/* Notes an execution in the call in progress. */
void qp_library_calls_note(const qp_key *key);

/* Ends the call in progress, which counts if something was executed in it. True: there is room for
 * no more. */
bool qp_library_calls_end(int64_t ns);

/* Forgets what was executed in the call in progress; and the calls that have ended. */
void qp_library_calls_drop(void);
void qp_library_calls_drop_ended(void);

/* Adds the calls that have ended to the rows, of each statement and path all but the longest. */
void qp_library_calls_flush(void);
