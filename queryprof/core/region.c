#include "region.h"

#include "allocation.h"

static const struct {
    uint32_t row_bytes;
    uint32_t capacity;
} layout[QP_TABLES] = {
    [QP_TEXTS] = {1, QP_TEXT_BYTES},
    [QP_STATEMENT_ROWS] = {sizeof(qp_statement_row), QP_STATEMENTS},
    [QP_LINE_ROWS] = {sizeof(qp_line_row), QP_LINES},
    [QP_STACK_ROWS] = {sizeof(qp_stack_row), QP_STACKS},
};

static struct {
    char *start[QP_TABLES]; /* of each table, in the mapping; NULL: it was never made */
    uint32_t count[QP_TABLES];
    void *memory;
    size_t bytes;
} region;

enum { ALIGNMENT = 64 };

static size_t table_bytes(qp_table table)
{
    size_t bytes = (size_t)layout[table].row_bytes * layout[table].capacity;
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

bool qp_region_start(void)
{
    if (region.memory) {
        return true;
    }
    for (int i = 0; i < QP_TABLES; i++) {
        region.bytes += table_bytes((qp_table)i);
    }
    region.memory = qp_map(region.bytes);
    if (!region.memory) {
        region.bytes = 0;
        return false;
    }
    char *at = region.memory;
    for (int i = 0; i < QP_TABLES; i++) {
        region.start[i] = at;
        at += table_bytes((qp_table)i);
    }
    return true;
}

void qp_region_stop(void)
{
    for (int i = 0; i < QP_TABLES; i++) {
        region.count[i] = 0;
    }
    if (region.memory) {
        qp_map_again(region.memory, region.bytes);
    }
}

void *qp_rows(qp_table table)
{
    return region.start[table];
}

uint32_t qp_row_count(qp_table table)
{
    return region.count[table];
}

uint32_t qp_rows_add(qp_table table, uint32_t rows)
{
    uint32_t first = region.count[table];
    if (rows > layout[table].capacity - first) {
        return UINT32_MAX;
    }
    region.count[table] += rows;
    return first;
}
