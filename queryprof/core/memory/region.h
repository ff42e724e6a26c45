/* The memory of a recording: one mapping with a place for every table, at an address that stays the
 * same for as long as the process runs. It is the process's own at first, and may become a file in
 * the system's shared memory, which outlives the process (see shared_region.h).
 *
 * What a recording holds is gone when it stops, and reads as zeros from then on: a call that began
 * before may still look. With the GIL.
 */
#ifndef QP_MEMORY_REGION_H
#define QP_MEMORY_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/tables.h"

enum { QP_PAGE = 4096 };

/* Each table's first row, in the mapping; and the header. Valid from the first qp_region_start on.
 */
extern char *qp_table_start[QP_TABLES];
extern qp_header *qp_head;

/* Rows of each table; the header repeats it for readers. */
extern uint32_t qp_row_counts[QP_TABLES];

/* Maps the memory, with all tables empty; false without memory. */
bool qp_region_start(void);

/* Empties all tables but that of calls, which knows itself which of them are in progress. */
void qp_region_stop(void);

/* Empties a table. */
void qp_rows_clear(qp_table table);

/* The first row of a table. */
static inline void *qp_rows(qp_table table)
{
    return qp_table_start[table];
}

/* Rows that a table has. */
static inline uint32_t qp_row_count(qp_table table)
{
    return qp_row_counts[table];
}

/* Adds `rows` rows of zeros, which are there for readers from here on, and returns the number of
 * the first; UINT32_MAX: there is no room. */
uint32_t qp_rows_add(qp_table table, uint32_t rows);

/* Bytes of the whole mapping; of it, of a table's rows that there are. */
size_t qp_region_bytes(void);
size_t qp_table_bytes(qp_table table);

/* The memory is another now, with the same rows: a file, whose pages must be asked for before they
 * are touched, if `is_shared`. */
void qp_region_moved(bool is_shared);

/* The same in the child of a fork, with the rows of the names alone: the parent may have added
 * others since. */
void qp_region_left(void);

#endif
