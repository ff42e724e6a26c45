#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* madvise, syscall */
#endif
#include "memory/region.h"

#include "memory/columns.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#ifdef __linux__
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#endif

#include "runtime/allocation.h"

enum { HEAD_BYTES = 4 * QP_PAGE, MAX_STEP = 16 * QP_PAGE };

char *qp_table_start[QP_TABLES];
qp_header *qp_head;
uint32_t qp_row_counts[QP_TABLES];

static struct {
    char *memory;
    size_t bytes;
    size_t committed[QP_TABLES]; /* bytes of each table that may be touched */
    bool is_shared;
} region;

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static size_t table_capacity_bytes(qp_table table)
{
    return round_up((size_t)qp_tables[table].row_bytes * qp_tables[table].capacity, QP_PAGE);
}

/* Writes the columns as the end of a line, and returns the start of the next line; NULL if there is
 * no room. */
static char *write_columns(char *at, const char *end, const qp_column *column)
{
    for (; at && column->name; column++) {
        int length = snprintf(at, (size_t)(end - at), " %s:%c:%u:%u", column->name, column->code,
                              (unsigned)column->at, (unsigned)column->bytes);
        at = length < end - at ? at + length : NULL;
    }
    if (at && at + 1 < end) {
        *at++ = '\n';
        return at;
    }
    return NULL;
}

/* Writes the description of the tables: for each table, a line with its name, offset, bytes per
 * row, capacity and columns. A column has its name, code, offset and bytes. */
static bool write_description(void)
{
    char *start = region.memory + sizeof(qp_header);
    char *at = start, *end = region.memory + HEAD_BYTES;
    at += snprintf(at, (size_t)(end - at), "header 0 %zu 1", sizeof(qp_header));
    at = write_columns(at, end, qp_header_columns);
    for (int i = 0; at && i < QP_TABLES; i++) {
        int length = snprintf(at, (size_t)(end - at), "%s %zu %u %u", qp_tables[i].name,
                              (size_t)(qp_table_start[i] - region.memory),
                              (unsigned)qp_tables[i].row_bytes, (unsigned)qp_tables[i].capacity);
        at = length < end - at ? write_columns(at + length, end, qp_tables[i].columns) : NULL;
    }
    *qp_head = (qp_header){.magic = "QPREGION", /* without its final zero */
                           .version = QP_REGION_VERSION,
                           .text_at = sizeof(qp_header),
                           .text_bytes = (uint32_t)(at - start)};
    return at != NULL;
}

bool qp_region_start(void)
{
    if (!region.memory) {
        size_t bytes = HEAD_BYTES;
        for (int i = 0; i < QP_TABLES; i++) {
            bytes += table_capacity_bytes((qp_table)i);
        }
        region.memory = qp_map_zeros(bytes);
        if (!region.memory) {
            return false;
        }
        region.bytes = bytes;
        qp_head = (qp_header *)region.memory;
        char *at = region.memory + HEAD_BYTES;
        for (int i = 0; i < QP_TABLES; i++) {
            qp_table_start[i] = at;
            at += table_capacity_bytes((qp_table)i);
        }
    }
    bool described = write_description();
    qp_head->counts[QP_CALL_ROWS] = qp_row_counts[QP_CALL_ROWS]; /* an earlier recording's */
    qp_head->state = QP_REGION_RECORDS;
    return described;
}

void qp_region_stop(void)
{
    if (!region.memory) {
        return;
    }
    qp_map_reset(region.memory, (size_t)(qp_table_start[QP_CALL_ROWS] - region.memory));
    memset(region.committed, 0, sizeof region.committed);
    memset(qp_row_counts, 0, QP_CALL_ROWS * sizeof *qp_row_counts);
}

size_t qp_region_bytes(void)
{
    return region.bytes;
}

size_t qp_table_bytes(qp_table table)
{
    return (size_t)qp_tables[table].row_bytes * qp_row_counts[table];
}

#ifdef __linux__
/* Allocates pages of a file in shared memory. When the memory is full, this system call returns an
 * error, whereas a store into a page would raise SIGBUS. */
static bool allocate_pages(char *from, size_t bytes)
{
    if (!madvise(from, bytes, MADV_POPULATE_WRITE)) {
        return true;
    }
    if (errno != EINVAL) {
        return false;
    }
    for (size_t at = 0; at < bytes; at += QP_PAGE) { /* before Linux 5.14 */
        struct timespec *page = (struct timespec *)(void *)(from + at);
        if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, page) != 0) {
            return false;
        }
        memset(page, 0, sizeof *page);
    }
    return true;
}
#else
static bool allocate_pages(char *from, size_t bytes)
{
    (void)from;
    (void)bytes;
    return true;
}
#endif

static void set_count(qp_table table, uint32_t count)
{
    qp_row_counts[table] = count;
    qp_head->counts[table] = count;
}

static bool commit_pages(qp_table table, size_t wanted)
{
    size_t *committed = &region.committed[table];
    while (*committed < wanted) {
        size_t step = *committed < QP_PAGE ? QP_PAGE : *committed;
        step = step < MAX_STEP ? step : MAX_STEP;
        step = step < table_capacity_bytes(table) - *committed
                   ? step
                   : table_capacity_bytes(table) - *committed;
        if (region.is_shared && !allocate_pages(qp_table_start[table] + *committed, step)) {
            return false;
        }
        *committed += step;
    }
    return true;
}

void qp_rows_clear(qp_table table)
{
    /* Clear only the used part, because touching the rest would take memory. */
    memset(qp_table_start[table], 0, qp_table_bytes(table));
    set_count(table, 0);
}

uint32_t qp_rows_add(qp_table table, uint32_t rows)
{
    const qp_table_facts *facts = &qp_tables[table];
    uint32_t first = qp_row_counts[table];
    if (rows > facts->capacity - first ||
        !commit_pages(table, (size_t)facts->row_bytes * (first + rows))) {
        return UINT32_MAX;
    }
    atomic_thread_fence(memory_order_release);
    set_count(table, first + rows);
    return first;
}

void qp_region_remapped(bool is_shared)
{
    region.is_shared = is_shared;
    for (int i = 0; i < QP_TABLES; i++) { /* rows in use have pages */
        region.committed[i] = round_up(qp_table_bytes((qp_table)i), QP_PAGE);
    }
}

void qp_region_remapped_in_child(void)
{
    for (int i = 0; i < QP_TABLES; i++) {
        set_count((qp_table)i, i < QP_FIRST_SUMS ? qp_row_counts[i] : 0);
    }
    qp_region_remapped(false);
}
