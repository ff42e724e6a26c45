/* The tables of a recording for readers of its memory: the names of their columns, and the columns'
 * offsets in a row. */
#pragma once

#include <stdint.h>

#include "memory/tables.h"

/* A column that readers see. */
typedef struct {
    const char *name;
    char code; /* format character of Python's struct module, or 't' for a text */
    uint16_t at;
    uint16_t bytes;
} qp_column;

typedef struct {
    const char *name;
    uint32_t row_bytes;
    uint32_t capacity;
    const qp_column *columns; /* array that ends with a column without a name */
} qp_table_facts;

/* The columns of each table, and of the header. */
extern const qp_table_facts qp_tables[QP_TABLES];
extern const qp_column qp_header_columns[];
