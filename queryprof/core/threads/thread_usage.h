/* The resource usage of threads that call drivers. Each thread reads its own usage, from time to
 * time and when it ends, because /proc drops it then.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* Guard the rows of threads and tasks, because a thread that ends changes them without the GIL. The
 * lock is held while their memory is exchanged or emptied, and never while waiting for anything. */
void qp_thread_usage_lock(void);
void qp_thread_usage_unlock(void);

/* Registers the running thread, with Python's `id`, under this name in this recording. The caller
 * must hold the GIL, also for qp_thread_usage_read. */
void qp_thread_usage_begin(uint64_t id, uint16_t name, uint32_t recording);

/* Stores the running thread's usage up to now. */
void qp_thread_usage_read(void);

/* Excludes the bytes that the running thread wrote for queryprof. */
void qp_thread_usage_leave_out(int64_t written_bytes, int64_t write_calls);

/* Must be called when the running thread ends. Adds its usage to the threads of its name. The
 * caller need not hold the GIL. */
void qp_thread_usage_end(void);

/* Adds the usage of a living thread (`kernel_id`) to the threads of its name, since this function
 * last counted it. For a thread that has never called a driver, the caller passes the usage at that
 * time (`before`). */
void qp_thread_usage_count(int64_t kernel_id, uint16_t name, const qp_usage *now,
                           const qp_usage *before);

/* Must be called when the recording starts. Existing threads then count from their first call,
 * later ones from their start. */
void qp_thread_usage_start(void);

/* Clears the usage. */
void qp_thread_usage_clear(void);

/* In a forked child: makes a new lock. */
void qp_thread_usage_after_fork(void);
