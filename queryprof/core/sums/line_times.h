/* The time of the program's lines that execute statements through a library. An object mapper
 * builds the statement and makes objects from its rows, which takes many times as long as the
 * driver. Some passes of such a line are timed, by statement and call path. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/sampled_row.h"

/* Allocates the index. Returns false if out of memory. */
bool qp_line_times_start(void);
void qp_line_times_stop(void);
void qp_line_times_clear(void);

/* Returns the row of a statement and path, and adds a new row if needed. NULL if there is no room.
 * Valid until the rows are cleared. */
qp_line_time_row *qp_line_times_row(const qp_key *key);
