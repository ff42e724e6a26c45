#include "runtime/periodic_work.h"

#include <Python.h>

#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/exception.h"
#include "runtime/recording.h"
#include "runtime/thread_local.h"

enum { FIRST_INTERVAL_NS = 1000 * 1000 * 1000 / 32, INTERVAL_NS = 1000 * 1000 * 1000 };

uint64_t qp_periodic_due_ticks = UINT64_MAX;

static qp_periodic_function *periodic_work;
static bool has_use_for_more;
static int64_t interval_ns; /* until the next round */

/* Each interval is twice as long as the previous interval, up to a second. So if a process is
 * killed, the data that is copied only in rounds covers at least half of its run. */
static void schedule_next(void)
{
    qp_periodic_due_ticks = qp_clock_ticks() + (uint64_t)qp_ns_to_ticks(interval_ns);
    interval_ns = interval_ns < INTERVAL_NS ? 2 * interval_ns : INTERVAL_NS;
}

void qp_periodic_start(qp_periodic_function *work)
{
    periodic_work = work;
    has_use_for_more = true;
    interval_ns = FIRST_INTERVAL_NS;
    schedule_next();
}

void qp_periodic_stop(void)
{
    qp_periodic_due_ticks = UINT64_MAX;
}

void qp_periodic_request(void)
{
    if (qp_periodic_due_ticks != UINT64_MAX && has_use_for_more) {
        qp_periodic_due_ticks = 0;
    }
}

QP_COLD void qp_periodic_run(void)
{
    if (!qp_recording || qp_here.muted) {
        return;
    }
    qp_exception exception = qp_exception_take();
    uint64_t now_ticks = qp_clock_ticks();
    schedule_next();
    qp_here.muted = true;
    has_use_for_more = periodic_work(now_ticks);
    qp_here.muted = false;
    qp_exception_put_back(&exception);
}
