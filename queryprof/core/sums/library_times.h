/* The time of the libraries through which statements are executed: an object mapper builds the
 * statement and makes objects of its rows, and that takes many times as long as the driver. By
 * statement and call path, of some calls of the library's function that the program calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/sampled_row.h"

/* Allocates the index; false without memory. */
bool qp_library_times_start(void);
void qp_library_times_stop(void);
void qp_library_times_clear(void);

/* The row of a statement and path, added if new, or NULL: there is no room. Valid until the rows
 * are cleared. */
qp_library_row *qp_library_times_of(const qp_key *key);
