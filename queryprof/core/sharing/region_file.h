/* Opens and writes files that contain a region or its rows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of bytes that qp_write_at has written, and the number of its write calls. */
typedef struct {
    int64_t bytes;
    int64_t calls;
} qp_written_bytes;

extern qp_written_bytes qp_written_so_far;

/* Excludes the bytes written since `before` from the running thread's usage, because queryprof
 * wrote them. */
void qp_written_exclude_from_usage(qp_written_bytes before);

/* Writes all bytes at an offset of a file. Returns false on failure. */
bool qp_write_at(int file, const char *bytes, size_t length, long long at);

/* Returns whether the process's limit allows a file as large as the region. Writing beyond the
 * limit raises a signal. */
bool qp_region_fits_file_limit(void);

/* Makes a new file as large as the region. Returns false on failure, or if the limit is smaller. */
bool qp_region_prepare_file(int file);

/* Writes the region's header and its rows in use to a new file, and makes the file as large as the
 * region. Returns false on failure. */
bool qp_region_write(int file);

/* Writes the identity of this process to the header. */
void qp_region_write_identity(void);

/* Moves a file descriptor above the standard streams, which the program may have closed and to
 * which its other threads may write. Takes the result of open(), and returns the descriptor (owned
 * by the caller) or -1. */
int qp_move_above_stdio(int file);
