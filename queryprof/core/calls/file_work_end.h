/* The end of a call that worked on files. qp_call_end_file_work adds the call's work to the sums,
 * and clears the work. */
#pragma once

#include "calls/call.h"

void qp_call_end_file_work(qp_call *call, int64_t changed_rows);

/* Adds to the sums the locks that were released outside calls, and the locks held for long.
 * `with_held`: adds all held locks. */
void qp_lock_sums_update(bool with_held);
