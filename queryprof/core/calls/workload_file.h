/* The file of a workload: data is buffered, and appended to the file in large parts.
 *
 * The file is opened for each write and closed again, since a program may close unknown
 * descriptors, and open its own files under the same numbers.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True while executions are written. Becomes false if the file cannot be written. */
extern bool qp_workload_on;

/* Begins to write files whose names begin with `prefix` (copied): one file per process, of up to
 * `most_bytes` each. Returns false if out of memory, or if the prefix is too long. */
bool qp_workload_begin(const char *prefix, int64_t most_bytes);

/* Begins a new file, and drops the buffer's content. */
void qp_workload_begin_file(void);

/* Writes the buffer's content to the file. */
void qp_workload_flush(void);

/* Returns whether the file has reached its maximum size. */
bool qp_workload_is_full(void);

/* Returns whether the last flush was over a second ago. */
bool qp_workload_flush_is_due(uint64_t now_ticks);

/* Append to the file: bytes (copied), one byte, a number, or a kind, a length and that many
 * bytes. */
void qp_workload_put(const void *bytes, size_t length);
void qp_workload_put_byte(char byte);
void qp_workload_put_number(uint32_t number);
void qp_workload_put_bytes(char kind, const char *bytes, Py_ssize_t length);
