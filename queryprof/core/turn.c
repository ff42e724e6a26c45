#include "turn.h"

#include <Python.h>

#include "aggregates.h"
#include "callpath.h"
#include "checkpoint.h"
#include "clock.h"
#include "code_lines.h"
#include "compiler.h"
#include "probe_cost.h"
#include "recorder.h"
#include "region.h"
#include "shared_region.h"
#include "thread_local.h"
#include "thread_usage.h"
#include "threads.h"

enum { INTERVAL_NS = 1000 * 1000 * 1000 };

uint64_t qp_turn_due_ticks = UINT64_MAX;

static bool cannot_write; /* parts: what finds no room is added up with what else does not */

static void wait(void)
{
    qp_turn_due_ticks = qp_clock_ticks() + (uint64_t)qp_clock_ticks_of(INTERVAL_NS);
}

void qp_turn_start(void)
{
    cannot_write = false;
    wait();
}

void qp_turn_stop(void)
{
    qp_turn_due_ticks = UINT64_MAX;
}

void qp_turn_soon(void)
{
    if (qp_turn_due_ticks != UINT64_MAX && !cannot_write) {
        qp_turn_due_ticks = 0;
    }
}

/* The code objects are a cache: emptied in time, it never is too small for long. */
static void forget_code(void)
{
    if (qp_code_lines_nearly_full()) {
        qp_callpath_forget();
        qp_code_lines_forget();
    }
}

QP_COLD void qp_turn(void)
{
    if (!qp_recording || qp_here.muted) {
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    uint64_t from = qp_clock_ticks();
    wait();
    bool was_muted = qp_here.muted;
    qp_here.muted = true;
    qp_recorder_settle();
    qp_thread_usage_note();
    qp_head->turn_unix_ns = qp_clock_unix_ns(from);
    qp_head->turns++;
    int64_t written = qp_written_bytes;
    qp_checkpoint_turn();
    qp_region_share_again();
    qp_thread_usage_leave_out(qp_written_bytes - written);
    qp_own_ticks += qp_clock_elapsed(from, qp_clock_ticks());
    qp_head->own_ns = qp_clock_ns(qp_own_ticks);
    if (qp_aggregates_nearly_full() && !cannot_write) {
        cannot_write = !qp_recorder_end_part();
    }
    forget_code(); /* last: what is let go of may end the recording */
    qp_here.muted = was_muted;
    PyErr_Restore(type, value, traceback);
}
