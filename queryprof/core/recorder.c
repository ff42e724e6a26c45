#include "recorder.h"

#include "aggregates.h"
#include "callpath.h"
#include "clock.h"
#include "code_lines.h"
#include "counters.h"
#include "executions.h"
#include "frames.h"
#include "handoffs.h"
#include "loops.h"
#include "notes.h"
#include "operations.h"
#include "plans.h"
#include "probe.h"
#include "region.h"
#include "samples.h"
#include "spans.h"
#include "stacks.h"
#include "stalls.h"
#include "statements.h"
#include "steps.h"
#include "task_makers.h"
#include "texts.h"
#include "thread_ends.h"
#include "threads.h"
#include "timeline.h"

static uint32_t recordings;

uint32_t qp_recording;

int qp_recorder_start(void)
{
    qp_clock_start();
    qp_frames_start(PyThreadState_Get());
    bool started = qp_region_start() && qp_texts_start() && qp_statements_start() &&
                   qp_code_lines_start() && qp_stacks_start() && qp_aggregates_start() &&
                   qp_executions_start() && qp_plans_start() && qp_samples_start() &&
                   qp_loops_start() && qp_steps_start() && qp_stalls_start() && qp_spans_start() &&
                   qp_notes_start() && qp_handoffs_start() &&
                   qp_threads_start(PyInterpreterState_Get()) == 0;
    if (!started) {
        qp_recorder_stop();
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        return -1;
    }
    for (int i = 0; i < QP_OPERATIONS; i++) {
        const char *name = qp_operations[i].statement;
        qp_operation_statements[i] = name ? qp_statement_of_name(name) : QP_STATEMENT_UNKNOWN;
    }
    qp_timeline_start(qp_clock_unix_ns(qp_clock_ticks()));
    qp_recording = ++recordings;
    return 0;
}

void qp_recorder_stop(void)
{
    qp_recording = 0;
    qp_calls_forget();
    qp_handoffs_stop();
    qp_notes_stop();
    qp_spans_stop();
    qp_task_makers_stop();
    qp_stalls_stop();
    qp_steps_stop();
    qp_loops_stop();
    qp_threads_stop();
    qp_samples_stop();
    qp_plans_stop();
    qp_aggregates_stop();
    qp_callpath_forget();
    qp_stacks_stop();
    qp_code_lines_stop();
    qp_statements_stop();
    qp_texts_stop();
    qp_region_stop();
}

bool qp_recorder_is_on(void)
{
    return qp_recording != 0;
}

void qp_recorder_forget(void)
{
    qp_executions_forget();
    qp_samples_forget();
    qp_stalls_forget();
    qp_steps_forget();
    qp_plans_forget();
    qp_aggregates_forget();
    qp_handoffs_forget();
    qp_spans_forget();
    qp_timeline_start(qp_clock_unix_ns(qp_clock_ticks()));
}

void qp_recorder_after_fork(void)
{
    qp_counters_after_fork();
    qp_executions_after_fork();
    qp_calls_after_fork();
    qp_thread_ends_after_fork();
    qp_recorder_forget();
    qp_recording = ++recordings;
    qp_loops_after_fork();
}

void qp_recorder_settle(void)
{
    qp_stalls_settle();
    qp_loops_settle();
    qp_orphans_collect();
    qp_counters_settle();
    qp_executions_settle();
    qp_clock_calibrate();
}

bool qp_recorder_end_interval(void)
{
    bool full = qp_aggregates_nearly_full();
    qp_aggregates_rewind();
    if (full && qp_aggregates_changed()) {
        return false;
    }
    if (full) {
        qp_aggregates_forget();
    }
    if (qp_code_lines_nearly_full()) {
        qp_callpath_forget();
        qp_code_lines_forget();
    }
    return true;
}
