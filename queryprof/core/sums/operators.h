/* The operators of a database's own plan, by statement and place in it: rows and times that the
 * database's profiler has measured.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* Adds an operator's figures to those of its kind in earlier executions. False: there is no room,
 * and nothing was added. With the GIL. */
bool qp_operator_add(const qp_operator_key *key, const qp_operator_sums *more);
