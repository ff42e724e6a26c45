/* The memory of a recording: one mapping that contains all tables. Its address does not change
 * while the process runs. It is private to the process at first, and may become a file in the
 * system's shared memory, which outlives the process (see shared_region.h).
 *
 * When a recording stops, its content is cleared and reads as zeros from then on, because a call
 * that began earlier may still read it. The caller must hold the GIL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/header.h"
#include "memory/tables.h"

enum { QP_PAGE = 4096 };

/* Each table's first row in the mapping, and the header. Set by the first call to qp_region_start.
 */
extern char *qp_table_start[QP_TABLES];
extern qp_header *qp_head;

/* Number of rows of each table. The header repeats these numbers for readers. */
extern uint32_t qp_row_counts[QP_TABLES];

/* Maps the memory, with all tables empty. Returns false if out of memory. */
bool qp_region_start(void);

/* Empties all tables except the table of calls. executions.c clears that table, because some calls
 * are still in progress. */
void qp_region_stop(void);

/* Empties a table. */
void qp_rows_clear(qp_table table);

/* Returns the first row of a table. */
static inline void *qp_first_row(qp_table table)
{
    return qp_table_start[table];
}

/* Returns the number of rows of a table. */
static inline uint32_t qp_row_count(qp_table table)
{
    return qp_row_counts[table];
}

/* Adds `rows` rows of zeros, which readers see from now on. Returns the number of the first added
 * row; UINT32_MAX if the table is full. */
uint32_t qp_rows_add(qp_table table, uint32_t rows);

/* Returns the number of bytes of the mapping, and of the rows in use of a table. */
size_t qp_region_bytes(void);
size_t qp_table_bytes(qp_table table);

/* Must be called after the mapping was replaced by another mapping with the same rows. `is_shared`:
 * the new mapping is a file, whose pages must be allocated before they are touched. */
void qp_region_remapped(bool is_shared);

/* Must be called in a forked child instead of qp_region_remapped. Keeps only the rows of names,
 * because the parent may have added other rows since. */
void qp_region_remapped_in_child(void);
