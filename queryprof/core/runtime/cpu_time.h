/* CPU time of threads, and the time that they waited for a free CPU. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The system's number of the running thread; 0 if unknown. */
long qp_thread_kernel_id(void);

/* Returns whether the running thread is the first of its process; true where that is unknown. */
bool qp_thread_is_main(void);

/* Nanoseconds that a living thread of this process ran; -1: unknown. The caller need not hold the
 * GIL. */
int64_t qp_cpu_ns(long kernel_id);

/* Nanoseconds that such a thread was ready to run but did not; 0 if unknown. It reads a file. So
 * call it only in a thread with its own file table: the program may close descriptors that it did
 * not open, or use their numbers. The caller need not hold the GIL. */
int64_t qp_cpu_queued_ns(long kernel_id);

/* Nanoseconds of CPU time that the running thread has had. The caller need not hold the GIL. */
int64_t qp_thread_cpu_ns(void);
