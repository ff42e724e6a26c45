/* The memory of a recording: one mapping with a place for every table, at an address that stays the
 * same for as long as the process runs.
 *
 * What a recording holds is gone when it stops, and reads as zeros from then on: a call that began
 * before may still look. With the GIL.
 */
#ifndef QP_REGION_H
#define QP_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tables.h"

/* Maps the memory, with all tables empty; false without memory. */
bool qp_region_start(void);

/* Empties all tables. */
void qp_region_stop(void);

/* The first row of a table; valid from the first qp_region_start on. */
void *qp_rows(qp_table table);

/* Rows that a table has. */
uint32_t qp_row_count(qp_table table);

/* Adds `rows` rows of zeros and returns the number of the first; UINT32_MAX: there is no room. */
uint32_t qp_rows_add(qp_table table, uint32_t rows);

#endif
