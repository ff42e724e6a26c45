/* The longest stalls, each with its start time and duration. */
#pragma once

#include <stdint.h>

#include "loops/step.h"

/* Keeps a stall that has lasted `ns` so far, if it is one of the longest. `row` is the row of the
 * stall's function and call path. */
void qp_stall_event_keep(qp_step *step, const qp_stall_row *row, uint32_t stack, int64_t ns);
