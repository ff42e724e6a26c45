#include "watchdog.h"

#include "background.h"
#include "clock.h"
#include "cpu_time.h"
#include "loops.h"
#include "steps.h"

enum { TURNS_A_THRESHOLD = 5 };

static qp_background *present; /* owned; NULL: none */

bool qp_watchdog_awaited;

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
        lane->seen_cpu_ns = qp_cpu_wanted_ns(lane->kernel_id);
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
