/* The resource usage of threads that call drivers. Each thread reads its own usage from time to
 * time, and when the thread ends, because /proc then drops the usage. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* Lock and unlock the rows of threads and tasks, because a thread that ends changes these rows
 * without the GIL. Hold the lock while the memory of the rows is exchanged or emptied. Never wait
 * for anything while holding the lock. */
void qp_thread_usage_lock(void);
void qp_thread_usage_unlock(void);

/* Registers the running thread, with its Python `id`, under the number of its name in this
 * recording. The caller must hold the GIL, also for qp_thread_usage_store. */
void qp_thread_usage_register(uint64_t id, uint16_t name, uint32_t recording);

/* Stores the running thread's usage up to now. */
void qp_thread_usage_store(void);

/* Excludes the bytes that the running thread wrote for queryprof. */
void qp_thread_usage_exclude(int64_t written_bytes, int64_t write_calls);

/* Must be called when the running thread ends. Adds the thread's usage to the usage of the threads
 * with its name. The caller need not hold the GIL. */
void qp_thread_usage_end(void);

/* Adds a living thread's usage since the last call of this function to the usage of the threads
 * with its name. `kernel_id` is the thread, `now` is its present usage. For a thread that has never
 * called a driver, `before` is its usage at the last call. */
void qp_thread_usage_count_living(int64_t kernel_id, uint16_t name, const qp_usage *now,
                                  const qp_usage *before);

/* Must be called when the recording starts. Existing threads then count from their first call,
 * later threads from their start. */
void qp_thread_usage_start(void);

/* Clears the usage. */
void qp_thread_usage_clear(void);

/* In a forked child: makes a new lock. */
void qp_thread_usage_after_fork(void);
