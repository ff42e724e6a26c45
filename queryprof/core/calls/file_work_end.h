/* The end of a call that worked on files: its work is added to the sums, and cleared. */
#pragma once

#include "calls/call.h"

void qp_file_work_end(qp_call *call, int64_t changed_rows);

/* Adds the locks that were released outside calls, and those held for long; `with_held`: all held
 * locks. */
void qp_file_work_collect(bool with_held);
