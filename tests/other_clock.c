/*
 * Another wall clock, loaded by LD_PRELOAD: it differs from the machine's by CLOCK_AHEAD_S seconds.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int ahead(struct timespec *now)
{
    const char *seconds = getenv("CLOCK_AHEAD_S");
    now->tv_sec += seconds != NULL ? atoll(seconds) : 0;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long failed = syscall(SYS_clock_gettime, clock, now);
    return failed == 0 && clock == CLOCK_REALTIME ? ahead(now) : (int)failed;
}

int timespec_get(struct timespec *now, int base)
{
    return clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}
