/* Rows of samples of a statement at a call path, and the index that finds them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"
#include "runtime/index.h"

/* The beginning of each row. */
typedef struct {
    uint32_t statement;
    uint32_t path;
} qp_sampled_key;

/* The rows of a table of the region. */
typedef struct {
    qp_index index; /* finds a row by statement and path */
    qp_table table;
    uint32_t row_bytes;
} qp_sampled_rows;

/* Allocates an index for up to `most` rows. Returns false if out of memory. */
bool qp_sampled_rows_start(qp_sampled_rows *rows, uint32_t most);
void qp_sampled_rows_stop(qp_sampled_rows *rows);

/* Empties the table. */
void qp_sampled_rows_clear(qp_sampled_rows *rows);

/* Returns the row number of a statement and path, and adds a new row if needed. UINT32_MAX if there
 * is no room. */
uint32_t qp_sampled_row_number(qp_sampled_rows *rows, const qp_key *key);
