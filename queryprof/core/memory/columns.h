/* The tables of a recording as who reads its memory sees them: their columns, by name, and where
 * these stand in a row.
 */
#ifndef QP_MEMORY_COLUMNS_H
#define QP_MEMORY_COLUMNS_H

#include <stdint.h>

#include "memory/tables.h"

/* A column that readers see. */
typedef struct {
    const char *name;
    char code; /* as Python's struct module has it; 't': a text */
    uint16_t at;
    uint16_t bytes;
} qp_column;

typedef struct {
    const char *name;
    uint32_t row_bytes;
    uint32_t capacity;
    const qp_column *columns; /* up to one without a name */
} qp_table_facts;

/* By table; and those of the header. */
extern const qp_table_facts qp_tables[QP_TABLES];
extern const qp_column qp_header_columns[];

#endif
