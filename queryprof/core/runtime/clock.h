/* The clock of the probes: the CPU's time-stamp counter if the counter is invariant, otherwise the
 * operating system's monotonic clock.
 *
 * Ticks are converted to nanoseconds with a rate that is calibrated against the monotonic clock
 * at start and again once a second.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/compiler.h"

#if defined(__x86_64__) || defined(_M_X64)
#define QP_HAS_TSC 1
#elif defined(__aarch64__)
#define QP_HAS_CNTVCT 1
#endif

typedef struct {
    bool counter;         /* ticks are read from the CPU's counter */
    double ns_per_tick;   /* 1.0 where ticks are nanoseconds already */
    uint64_t base_ticks;  /* base_ticks, base_ns and base_unix_ns are the same instant */
    int64_t base_ns;      /* monotonic clock */
    int64_t base_unix_ns; /* wall clock */
} qp_clock_state;

extern qp_clock_state qp_clock;

/* Stores an instant from which qp_clock_start can calibrate, so that qp_clock_start need not wait
 * for a millisecond. */
void qp_clock_prepare(void);

/* Chooses the source and calibrates it; takes up to one millisecond. */
void qp_clock_start(void);

/* Recalibrates the rate over the time since qp_clock_start. */
void qp_clock_calibrate(void);

/* Adjusts the conversion if the current Unix time `unix_ns` shows that the wall clock was set. */
void qp_clock_adjust_to_wall(int64_t unix_ns);

/* Returns the operating system's Unix time in nanoseconds, or the time set by a test. */
int64_t qp_clock_unix_now_ns(void);

/* Sets the wall clock of this recording, which continues from this time (for tests of windows). */
void qp_clock_set_wall(int64_t unix_ns);

/* Nanoseconds of the operating system's monotonic clock. */
int64_t qp_clock_monotonic_ns(void);

/* Forces the operating system's clock (for tests of the estimating paths). */
void qp_clock_use_system(void);

#ifdef QP_FAULT_INJECTION
/* Stops the clock at `ns` (for tests); 0 lets it run again. */
void qp_clock_freeze(int64_t ns);
#endif

static QP_INLINE uint64_t qp_clock_ticks(void)
{
#if defined(QP_HAS_TSC)
    if (qp_clock.counter) {
        /* The intrinsic of <x86intrin.h>, declared here because that header is very long. */
        return __builtin_ia32_rdtsc();
    }
#elif defined(QP_HAS_CNTVCT)
    if (qp_clock.counter) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return (uint64_t)qp_clock_monotonic_ns();
}

/* A double holds 2^53 ticks exactly: 34 days at 3 GHz. */
static inline int64_t qp_ticks_to_ns(int64_t ticks)
{
    return (int64_t)((double)ticks * qp_clock.ns_per_tick);
}

static inline int64_t qp_ns_to_ticks(int64_t ns)
{
    return (int64_t)((double)ns / qp_clock.ns_per_tick);
}

/* Ticks from one reading to the next; never negative, even after a migration between CPUs. */
static inline int64_t qp_elapsed_ticks(uint64_t from, uint64_t to)
{
    return to > from ? (int64_t)(to - from) : 0;
}

/* Nanoseconds of the operating system's monotonic clock at an instant given in ticks. */
static inline int64_t qp_ticks_to_monotonic_ns(uint64_t ticks)
{
    return qp_clock.base_ns +
           (int64_t)((double)(int64_t)(ticks - qp_clock.base_ticks) * qp_clock.ns_per_tick);
}

/* Ticks of the clock at an instant of the monotonic clock. */
static inline uint64_t qp_monotonic_ns_to_ticks(int64_t monotonic_ns)
{
    return qp_clock.base_ticks +
           (uint64_t)(int64_t)((double)(monotonic_ns - qp_clock.base_ns) / qp_clock.ns_per_tick);
}

/* Wall-clock nanoseconds since 1970 of an instant given in ticks. */
static inline int64_t qp_ticks_to_unix_ns(uint64_t ticks)
{
    return qp_clock.base_unix_ns +
           (int64_t)((double)(int64_t)(ticks - qp_clock.base_ticks) * qp_clock.ns_per_tick);
}
