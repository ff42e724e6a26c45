#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall */
#endif
#include "runtime/cpu_time.h"

#include "runtime/thread_local.h"

#ifdef __linux__
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

long qp_thread_kernel_id(void)
{
    return syscall(SYS_gettid);
}

bool qp_thread_is_main(void)
{
    return qp_thread_kernel_id() == getpid();
}

/* Returns the second number in the thread's schedstat (Documentation/scheduler/sched-stats.rst of
 * Linux); 0 if the kernel does not count. */
int64_t qp_cpu_queued_ns(long kernel_id)
{
    if (!qp_here.has_own_files) {
        return 0;
    }
    char path[64], text[96];
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", kernel_id);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    if (size <= 0) {
        return 0;
    }
    text[size] = 0;
    char *second;
    strtoll(text, &second, 10);
    return strtoll(second, NULL, 10);
}

int64_t qp_cpu_ns(long kernel_id)
{
    struct timespec time;
    /* The id of a thread's CPU clock, computed as in pthread_getcpuclockid. An ended thread has no
     * clock. */
    clockid_t clock = (clockid_t)(((unsigned)~kernel_id << 3) | 6);
    if (!kernel_id || clock_gettime(clock, &time) != 0) {
        return -1;
    }
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}
#else
long qp_thread_kernel_id(void)
{
    return 0;
}

bool qp_thread_is_main(void)
{
    return true;
}

int64_t qp_cpu_ns(long kernel_id)
{
    (void)kernel_id;
    return -1;
}

int64_t qp_cpu_queued_ns(long kernel_id)
{
    (void)kernel_id;
    return 0;
}
#endif

#include <time.h>

int64_t qp_thread_cpu_ns(void)
{
    struct timespec time;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0
               ? (int64_t)time.tv_sec * 1000000000 + time.tv_nsec
               : 0;
}
