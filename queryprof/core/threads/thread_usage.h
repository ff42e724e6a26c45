/* The usage of the threads that call drivers, read by themselves: now and then, and when they end,
 * because /proc drops them then.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* Guards the rows of threads and tasks, which a thread that ends changes without the GIL: held
 * while their memory is exchanged or emptied, and never while waiting for anything. */
void qp_thread_usage_lock(void);
void qp_thread_usage_unlock(void);

/* Registers the running thread, with Python's `id`, under this name in this recording. The caller
 * must hold the GIL, also for the next function. */
void qp_thread_usage_begin(uint64_t id, uint16_t name, uint32_t recording);

/* Stores the running thread's usage up to now. */
void qp_thread_usage_read(void);

/* Excludes the bytes that the running thread wrote for queryprof. */
void qp_thread_usage_leave_out(int64_t written_bytes, int64_t write_calls);

/* When the running thread ends: adds its usage to the threads of its name. The caller need not hold
 * the GIL. */
void qp_thread_usage_end(void);

/* Adds the usage of a living thread, the system's `kernel_id`, to the threads of its name: since it
 * was last counted so; for a thread that never called a driver the caller passes the usage at that
 * time (`before`). */
void qp_thread_usage_count(int64_t kernel_id, uint16_t name, const qp_usage *now,
                           const qp_usage *before);

/* When recording starts: existing threads count from their first call on, later ones from their
 * beginning. */
void qp_thread_usage_start(void);

/* Clears the usage. */
void qp_thread_usage_clear(void);

/* In a forked child: makes a new lock. */
void qp_thread_usage_after_fork(void);
