/* CPU time of threads, and the time that they waited for a free CPU. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Returns the system's number of the running thread; 0 if unknown. */
long qp_thread_kernel_id(void);

/* Returns whether the running thread is the main thread of its process; true if unknown. */
bool qp_thread_is_main(void);

/* Returns the CPU time of a living thread of this process in nanoseconds; -1 if unknown. The caller
 * need not hold the GIL. */
int64_t qp_cpu_ns(long kernel_id);

/* Returns how many nanoseconds a living thread of this process has waited for a CPU; 0 if unknown.
 * The function opens a file. Call it only in a thread with its own file table, because the program
 * may close descriptors that it did not open. The caller need not hold the GIL. */
int64_t qp_cpu_queued_ns(long kernel_id);

/* Returns the CPU time of the running thread in nanoseconds. The caller need not hold the GIL. */
int64_t qp_thread_cpu_ns(void);
