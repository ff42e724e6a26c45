#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime under -std=c11 */
#endif
#include "runtime/clock.h"

#include <time.h>

#ifdef QP_HAS_TSC
#include <cpuid.h>
#endif

/* Minimum baseline for a rate that is accurate to 1 in 10,000 with 50 ns of jitter. */
#define FIRST_CALIBRATION_NS 1000000
#define LAST_CALIBRATION_NS 1000000000
/* A clock that is adjusted, but not set, never deviates by this much. */
#define SET_FROM_NS 1000000000
/* The latest instant that a trace can hold is 2^62 ns after 1970. */
#define LATEST_UNIX_S (((int64_t)1 << 62) / 1000000000)
/* A rate that moved more than this was disturbed (suspend, migration): start a new baseline. */
#define CREDIBLE_RATE_CHANGE 0.001

qp_clock_state qp_clock = {.counter = false, .ns_per_tick = 1.0};

#ifdef QP_FAULT_INJECTION
enum { IS_TESTED = true };
#else
enum { IS_TESTED = false };
#endif

static int64_t stopped_at_ns; /* 0 if the clock runs */

int64_t qp_clock_monotonic_ns(void)
{
    if (IS_TESTED && stopped_at_ns) {
        return stopped_at_ns;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t wall_ahead_ns; /* 0 except in tests */

static int64_t system_unix_ns(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    /* A clock before 1970 or after 2116 is wrong. The monotonic clock keeps durations right. The
     * same rule is in core/wall_clock.py. */
    if (now.tv_sec < 0 || now.tv_sec >= LATEST_UNIX_S) {
        return qp_clock_monotonic_ns();
    }
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t qp_clock_unix_now_ns(void)
{
    return system_unix_ns() + wall_ahead_ns;
}

void qp_clock_set_wall(int64_t unix_ns)
{
    wall_ahead_ns = unix_ns - system_unix_ns();
}

static bool counter_is_invariant(void)
{
#if defined(QP_HAS_TSC)
    unsigned a, b, c, d;
    /* CPUID 8000_0007H, EDX bit 8: "Invariant TSC" (Intel SDM volume 3, 18.17.1). */
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && ((d >> 8) & 1);
#elif defined(QP_HAS_CNTVCT)
    return true; /* the generic timer runs at a fixed rate by architecture */
#else
    return false;
#endif
}

/* One instant on three clocks. */
typedef struct {
    uint64_t ticks;
    int64_t ns;
    int64_t unix_ns;
} instant;

/* Reads the clocks at (nearly) the same instant: the closest of a few tries. */
static instant read_clocks(void)
{
    instant closest = {0};
    uint64_t narrowest = UINT64_MAX;
    for (int attempt = 0; attempt < 5; attempt++) {
        uint64_t before = qp_clock_ticks();
        int64_t ns = qp_clock_monotonic_ns(), now_unix_ns = qp_clock_unix_now_ns();
        uint64_t width = qp_clock_ticks() - before;
        if (width < narrowest) {
            narrowest = width;
            closest = (instant){before + width / 2, ns, now_unix_ns};
        }
    }
    return closest;
}

static void set_conversion_base(void)
{
    instant now = read_clocks();
    qp_clock.base_ticks = now.ticks;
    qp_clock.base_ns = now.ns;
    qp_clock.base_unix_ns = now.unix_ns;
}

void qp_clock_use_system(void)
{
    qp_clock.counter = false;
    qp_clock.ns_per_tick = 1.0;
    set_conversion_base();
}

void qp_clock_adjust_to_wall(int64_t unix_ns)
{
    int64_t by_ns = unix_ns - qp_ticks_to_unix_ns(qp_clock_ticks());
    if (by_ns > SET_FROM_NS || by_ns < -SET_FROM_NS) {
        set_conversion_base();
    }
}

#ifdef QP_FAULT_INJECTION
void qp_clock_freeze(int64_t ns)
{
    stopped_at_ns = ns;
    qp_clock_use_system();
}
#endif

static instant prepared; /* all zeros: no instant */

void qp_clock_prepare(void)
{
    if (!prepared.ns && counter_is_invariant()) { /* the first start: nothing has used the clock
                                                   * yet */
        qp_clock.counter = true;
        prepared = read_clocks();
    }
}

void qp_clock_start(void)
{
    wall_ahead_ns = 0;
    if (!counter_is_invariant() || stopped_at_ns) {
        qp_clock_use_system();
        return;
    }
    qp_clock.counter = true;
    set_conversion_base();
    instant before = prepared, now = read_clocks();
    if (now.ns - before.ns > LAST_CALIBRATION_NS) { /* the machine may have slept since */
        before = now;
    }
    while (now.ns - before.ns < FIRST_CALIBRATION_NS) {
        now = read_clocks();
    }
    if (now.ticks <= before.ticks) {
        qp_clock_use_system();
        return;
    }
    qp_clock.ns_per_tick = (double)(now.ns - before.ns) / (double)(now.ticks - before.ticks);
}

void qp_clock_calibrate(void)
{
    if (!qp_clock.counter) {
        return;
    }
    instant now = read_clocks();
    if (now.ticks <= qp_clock.base_ticks || now.ns - qp_clock.base_ns < FIRST_CALIBRATION_NS) {
        return;
    }
    double rate = (double)(now.ns - qp_clock.base_ns) / (double)(now.ticks - qp_clock.base_ticks);
    double change = rate / qp_clock.ns_per_tick - 1.0;
    if (change > CREDIBLE_RATE_CHANGE || change < -CREDIBLE_RATE_CHANGE) {
        set_conversion_base();
    } else {
        qp_clock.ns_per_tick = rate;
    }
}
