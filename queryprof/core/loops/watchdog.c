#include "loops/watchdog.h"

#include "loops/loops.h"
#include "runtime/clock.h"
#include "runtime/complaint.h"
#include "runtime/cpu_time.h"
#include "runtime/native_thread.h"

enum { IDLE_TURNS = 25 };

static const double SHARE_OF_A_THRESHOLD = 0.5;
static const double MARGIN_S = 50e-6; /* wake up a little later, so that the step has certainly
                                       * reached the threshold */

static qp_native_thread *present; /* owned; NULL if none */
static qp_watchdog_sampler *look;

bool qp_watchdog_awaited;
_Atomic bool qp_watchdog_sleeps;

/* Waits for the GIL, and samples the call path of a step. */
static void sample_step(qp_running_loop *running_loop, uint64_t number, uint64_t requested_ticks)
{
    int64_t cpu_ns = qp_cpu_ns(running_loop->kernel_id);
    PyGILState_STATE gil = PyGILState_Ensure();
    qp_here.muted = true;
    int64_t waited_ns = qp_ticks_to_ns(qp_elapsed_ticks(requested_ticks, qp_clock_ticks()));
    if (running_loop->seen_queued_ns >= 0) {
        int64_t queued_ns = qp_cpu_queued_ns(running_loop->kernel_id);
        atomic_store(&running_loop->queued_ns, queued_ns - running_loop->seen_queued_ns);
    }
    /* Python code releases the GIL after a switch interval, and waits until another thread has
     * taken the GIL. On a busy machine, either thread may wait for a CPU for a while. That time is
     * not work of the step. */
    int64_t worked_ns = cpu_ns < 0 ? waited_ns : qp_cpu_ns(running_loop->kernel_id) - cpu_ns;
    look(running_loop, number, requested_ticks, waited_ns < worked_ns ? waited_ns : worked_ns);
    PyGILState_Release(gil);
}

/* Checks a running loop. Returns when the next check is due, in ticks; 0 if no step is running. */
static uint64_t check_loop(qp_running_loop *running_loop)
{
    uint64_t started = atomic_load_explicit(&running_loop->started_ticks, memory_order_acquire);
    uint64_t number = atomic_load_explicit(&running_loop->step_number, memory_order_relaxed);
    uint64_t now = qp_clock_ticks();
    if (!started) {
        return 0;
    }
    if (running_loop->watched_number != number) {
        running_loop->watched_number = number;
        running_loop->watched_ns = qp_stall_ns;
        running_loop->seen_cpu_ns = qp_cpu_ns(running_loop->kernel_id);
        running_loop->seen_queued_ns =
            qp_here.has_own_files ? qp_cpu_queued_ns(running_loop->kernel_id) : -1;
        atomic_store(&running_loop->queued_ns, -1);
        running_loop->seen_ticks = now;
        atomic_store(&running_loop->seen_number, running_loop->seen_cpu_ns < 0 ? 0 : number);
    }
    int64_t elapsed_ns = qp_ticks_to_ns(qp_elapsed_ticks(started, now));
    if (elapsed_ns >= running_loop->watched_ns) {
        running_loop->watched_ns = elapsed_ns + qp_stall_ns;
        sample_step(running_loop, number, now);
    }
    return started + (uint64_t)qp_ns_to_ticks(running_loop->watched_ns);
}

/* Returns how many seconds the thread sleeps: until a running step becomes a stall, but at most
 * half a threshold, so that a step that begins during the sleep is not missed. Returns -1 if no
 * step has begun for a while: the thread then sleeps until a step begins. */
static double check_all_loops(void *Py_UNUSED(unused))
{
    static uint64_t last_steps;
    static int idle_turns;
    uint64_t next = 0, steps = 0;
    int count;
    qp_running_loop *running_loops = qp_running_loops(&count);
    for (int i = 0; i < count; i++) {
        uint64_t wanted = check_loop(&running_loops[i]);
        next = wanted && (!next || wanted < next) ? wanted : next;
        steps += atomic_load_explicit(&running_loops[i].step_number, memory_order_relaxed);
    }
    idle_turns = next || steps != last_steps ? 0 : idle_turns + 1;
    last_steps = steps;
    double usual_s = (double)qp_stall_ns * 1e-9 * SHARE_OF_A_THRESHOLD;
    if (idle_turns >= IDLE_TURNS) {
        idle_turns = 0;
        atomic_store(&qp_watchdog_sleeps, true);
        return -1;
    }
    double wanted_s = (double)qp_ticks_to_ns(qp_elapsed_ticks(qp_clock_ticks(), next)) * 1e-9;
    return next && wanted_s < usual_s ? wanted_s + MARGIN_S : usual_s;
}

void qp_watchdog_wake(void)
{
    atomic_store(&qp_watchdog_sleeps, false);
    if (present) {
        qp_native_thread_wake(present);
    }
}

int qp_watchdog_prepare(double threshold_s, qp_watchdog_sampler *function)
{
    look = function;
    qp_stall_ns = (int64_t)(threshold_s * 1e9);
    atomic_store(&qp_watchdog_sleeps, false);
    present = qp_native_thread_new(check_all_loops, NULL, threshold_s * SHARE_OF_A_THRESHOLD);
    qp_watchdog_awaited = present != NULL;
    return present ? 0 : -1;
}

void qp_watchdog_launch(void)
{
    qp_watchdog_awaited = false;
    if (present && !qp_native_thread_launch(present)) {
        qp_complain("no thread can be started: stalls are not seen");
    }
}

void qp_watchdog_stop(double timeout_s)
{
    qp_native_thread *stopped = present;
    present = NULL;
    qp_watchdog_awaited = false;
    if (stopped) {
        qp_native_thread_stop(stopped, timeout_s);
    }
}

void qp_watchdog_after_fork(void)
{
    present = NULL;
    qp_watchdog_awaited = false;
}
