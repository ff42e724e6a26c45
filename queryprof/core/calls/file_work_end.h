/* The end of a call that worked on files. qp_file_work_end adds the call's work to the sums, and
 * clears the work. */
#pragma once

#include "calls/call.h"

void qp_file_work_end(qp_call *call, int64_t changed_rows);

/* Adds to the sums the locks that were released outside calls, and the locks held for long.
 * `with_held`: adds all held locks. */
void qp_file_work_collect(bool with_held);
