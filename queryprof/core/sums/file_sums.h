/* The file work of calls, added up by key. */
#pragma once

#include <stdbool.h>

#include "memory/file_rows.h"

/* Allocates the index. Returns false if out of memory. */
bool qp_file_sums_start(void);
void qp_file_sums_stop(void);
void qp_file_sums_clear(void);

/* Adds the work of one call with this key. The caller must hold the GIL. */
void qp_file_sums_add(const qp_key *key, const qp_file_sums *work);
