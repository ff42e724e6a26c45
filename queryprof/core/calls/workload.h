/* The workload: all executions in order, with their texts and parameters, in a separate file.
 *
 * The workload is off unless a path is given, since values may be secrets. The format is described
 * in queryprof/replay/workload.py, which reads the file.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "calls/call.h"
#include "calls/workload_file.h"

/* Writes executions from now on to files whose names begin with `prefix` (copied): one file per
 * process, of at most `most_bytes` each. An empty prefix stops the workload. Returns false if out
 * of memory. The caller must hold the GIL. */
bool qp_workload_set_prefix(const char *prefix, int64_t most_bytes);

/* Adds an ended call to the workload; `result` is borrowed, NULL if the call raised. Never raises,
 * and runs no code of the program. */
void qp_workload_add_call(const qp_call *call, PyObject *result, uint64_t end_ticks);

/* Adds the number of rows fetched so far from the execution with this serial number. */
void qp_workload_add_fetched_rows(uint64_t serial, int64_t rows);

/* In a forked child: drops the parent's buffered data, and begins a new file. */
void qp_workload_after_fork(void);
