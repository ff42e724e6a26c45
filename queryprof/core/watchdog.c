#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "watchdog.h"

#include <time.h>

#include "background.h"
#include "clock.h"
#include "loops.h"
#include "steps.h"

enum { TURNS_A_THRESHOLD = 5 };

static qp_background *present; /* owned; NULL: none */

bool qp_watchdog_awaited;

/* CPU time of a thread of this process by Linux's number; -1: unknown. The number of a clock is
 * made of the thread's as clock_getcpuclockid(3) does it; a thread that is gone has none. */
static int64_t cpu_ns_of(long kernel_id)
{
#ifdef __linux__
    struct timespec time;
    clockid_t clock = (clockid_t)(((unsigned)~kernel_id << 3) | 6);
    if (kernel_id && clock_gettime(clock, &time) == 0) {
        return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
    }
#else
    (void)kernel_id;
#endif
    return -1;
}

/* Looks where a step is, if it is still the same; waits for the GIL first. */
static void sample(qp_lane *lane, uint64_t number, uint64_t asked_ticks)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    qp_here.muted = true;
    const qp_step *step = lane->in_use && lane->recording == qp_recording ? lane->step : NULL;
    if (step && step->number == number &&
        qp_clock_ns(qp_clock_elapsed(step->start_ticks, asked_ticks)) >= qp_stall_ns) {
        qp_step_sample(lane->step, asked_ticks);
    }
    PyGILState_Release(gil);
}

static void watch(qp_lane *lane)
{
    uint64_t started = atomic_load_explicit(&lane->started_ticks, memory_order_acquire);
    uint64_t number = atomic_load_explicit(&lane->step_number, memory_order_relaxed);
    uint64_t now = qp_clock_ticks();
    if (!started || now <= started) {
        return;
    }
    if (lane->watched_number != number) {
        lane->watched_number = number;
        lane->watched_ns = qp_stall_ns;
        lane->seen_cpu_ns = cpu_ns_of(lane->kernel_id);
        lane->seen_ticks = now;
        atomic_store(&lane->seen_number, lane->seen_cpu_ns < 0 ? 0 : number);
    }
    int64_t elapsed_ns = qp_clock_ns((int64_t)(now - started));
    if (elapsed_ns >= lane->watched_ns) {
        lane->watched_ns = elapsed_ns + qp_stall_ns;
        sample(lane, number, now);
    }
}

static void turn(void *Py_UNUSED(unused))
{
    int count;
    qp_lane *lanes = qp_lanes(&count);
    for (int i = 0; i < count; i++) {
        watch(&lanes[i]);
    }
}

int qp_watchdog_start(double threshold_s)
{
    qp_stall_ns = (int64_t)(threshold_s * 1e9);
    present = qp_background_new(turn, NULL, threshold_s / TURNS_A_THRESHOLD);
    qp_watchdog_awaited = present != NULL;
    return present ? 0 : -1;
}

void qp_watchdog_launch(void)
{
    qp_watchdog_awaited = false;
    if (present && !qp_background_launch(present)) {
        PySys_WriteStderr("queryprof: no thread can be started: stalls are not seen\n");
    }
}

void qp_watchdog_stop(double timeout_s)
{
    qp_background *stopped = present;
    present = NULL;
    qp_watchdog_awaited = false;
    if (stopped) {
        qp_background_stop(stopped, timeout_s);
    }
}

void qp_watchdog_after_fork(void)
{
    present = NULL;
    qp_watchdog_awaited = false;
}
