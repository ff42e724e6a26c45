#include "recording/recorder.h"

#include "calls/call_stack.h"
#include "calls/carry_over.h"
#include "calls/executions.h"
#include "calls/file_work_end.h"
#include "calls/probe.h"
#include "calls/workload.h"
#include "context/handoffs.h"
#include "context/spans.h"
#include "counters/counters.h"
#include "counters/plans.h"
#include "counters/readings.h"
#include "lines/line_choice.h"
#include "lines/line_passes.h"
#include "loops/loops.h"
#include "loops/stalls.h"
#include "loops/steps.h"
#include "memory/changes.h"
#include "memory/region.h"
#include "memory/texts.h"
#include "recording/windows.h"
#include "runtime/clock.h"
#include "runtime/complaint.h"
#include "runtime/exception.h"
#include "runtime/operations.h"
#include "runtime/periodic_work.h"
#include "runtime/recording.h"
#include "sharing/checkpoint.h"
#include "sharing/parts.h"
#include "sharing/region_file.h"
#include "sharing/shared_region.h"
#include "stacks/call_paths.h"
#include "stacks/code_lines.h"
#include "stacks/frames.h"
#include "stacks/stacks.h"
#include "stacks/task_creators.h"
#include "statements/statements.h"
#include "sums/aggregates.h"
#include "sums/file_sums.h"
#include "sums/line_times.h"
#include "sums/parameters.h"
#include "sums/recent_calls.h"
#include "sums/samples.h"
#include "sums/timeline.h"
#include "threads/thread_usage.h"
#include "threads/threads.h"

enum { SLACK = 16 }; /* a window's timeline begins 1/16 of its length before the window */

static uint32_t recordings;

/* For figures that are counted from the start of the recording: the values that earlier parts
 * contain. */
static struct {
    int64_t own_ticks;
    uint64_t lost_counters;
} before_part;

/* Writes the figures of the whole recording so far to the header. */
static void write_header(void)
{
    qp_head->ns_per_tick = qp_clock.ns_per_tick;
    qp_head->base_ticks = qp_clock.base_ticks;
    qp_head->base_unix_ns = qp_clock.base_unix_ns;
    qp_head->alive_unix_ns = qp_ticks_to_unix_ns(qp_clock_ticks());
    qp_head->lost_counters = qp_counters_lost_statements() - before_part.lost_counters;
    qp_head->unseen_files = qp_connections_with_own_vfs();
    qp_head->own_ns = qp_ticks_to_ns(qp_own_ticks - before_part.own_ticks);
}

/* Empties the cache of code objects before it is full. */
static void clear_code_cache(void)
{
    if (qp_code_lines_nearly_full()) {
        qp_call_paths_clear();
        qp_code_lines_clear();
    }
}

static bool cannot_write; /* parts cannot be written, so new keys are added to "(other)" when
                           * tables are full */
static bool has_complained;

/* Flushes everything except the line watch. `with_held`: also counts locks that have been held for
 * less than a second. */
static void flush_all(bool with_held)
{
    qp_stalls_flush();
    qp_loops_flush();
    qp_lock_sums_update(with_held);
    qp_pending_counters_collect();
    qp_counters_flush();
    qp_executions_flush();
    qp_clock_calibrate();
    qp_timeline_apply_calibration();
    write_header();
}

/* Ends the window if its time is over. Calls that ended before belong to that window. The call in
 * progress belongs to the next window. */
static void end_due_window(void)
{
    int64_t unix_ns = qp_head->window_ns ? qp_clock_unix_now_ns() : 0;
    if (unix_ns && qp_window_is_over(unix_ns)) {
        qp_recorder_end_window(unix_ns);
    }
}

/* Does the work of a round (runtime/periodic_work.h). */
static bool do_periodic_work(uint64_t now_ticks)
{
    end_due_window();
    flush_all(false);
    qp_thread_usage_store();
    qp_head->alive_unix_ns = qp_ticks_to_unix_ns(now_ticks);
    qp_head->rounds++;
    qp_written_bytes before = qp_written_so_far;
    qp_checkpoint_copy_slice();
    qp_region_retry_share();
    qp_written_exclude_from_usage(before);
    qp_own_ticks += qp_elapsed_ticks(now_ticks, qp_clock_ticks());
    qp_head->own_ns = qp_ticks_to_ns(qp_own_ticks - before_part.own_ticks);
    if (qp_aggregates_nearly_full() && !cannot_write) {
        cannot_write = !qp_recorder_end_part();
    }
    bool has_use_for_more = !cannot_write;
    clear_code_cache(); /* last: releasing an object may end the recording */
    return has_use_for_more;
}

static void begin_recording(void)
{
    qp_own_time_clear();
    before_part.own_ticks = 0;
    before_part.lost_counters = qp_counters_lost_statements();
    write_header();
    qp_rows_clear(QP_HELD_ROWS);
    qp_rows_add(QP_HELD_ROWS, QP_HELD); /* if there is no room, currently held locks are unknown */
    qp_head->start_unix_ns = qp_head->alive_unix_ns;
    qp_window_begin_part(qp_head->start_unix_ns);
    qp_recording = ++recordings;
    cannot_write = has_complained = false;
    qp_periodic_start(do_periodic_work);
}

int qp_recorder_start(void)
{
    qp_clock_start();
    qp_frames_choose_reading(PyThreadState_Get());
    bool started = qp_region_start() && qp_texts_start() && qp_statements_start() &&
                   qp_code_lines_start() && qp_stacks_start() && qp_call_paths_start() &&
                   qp_changes_start() && qp_aggregates_start() && qp_executions_start() &&
                   qp_plans_start() && qp_samples_allocate() && qp_file_sums_start() &&
                   qp_parameters_start() && qp_line_times_start() && qp_steps_start() &&
                   qp_spans_start() && qp_threads_start(PyInterpreterState_Get()) == 0 &&
                   qp_timeline_start(qp_ticks_to_unix_ns(qp_clock_ticks()));
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
    qp_windows_configure(0, 0);
    begin_recording();
    qp_thread_here(); /* the usage of this thread counts from now on, not from the thread's first
                       * call */
    return 0;
}

void qp_recorder_stop(void)
{
    qp_recording = 0;
    qp_periodic_stop();
    qp_checkpoint_configure("", 0, false);
    qp_workload_set_prefix("", 0);
    qp_line_choice_clear();
    qp_calls_clear();
    qp_spans_stop();
    qp_task_creators_stop();
    qp_steps_stop();
    qp_threads_stop();
    qp_samples_stop();
    qp_file_sums_stop();
    qp_parameters_stop();
    qp_line_times_stop();
    qp_plans_stop();
    qp_aggregates_stop();
    qp_changes_stop();
    qp_call_paths_stop();
    qp_stacks_stop();
    qp_code_lines_stop();
    qp_statements_stop();
    qp_texts_stop();
    qp_region_unshare();
    qp_region_stop();
}

bool qp_recorder_is_on(void)
{
    return qp_recording != 0;
}

/* Empties all sums. Names keep their numbers. */
static void clear_sums(void)
{
    qp_samples_clear();
    qp_stalls_clear();
    qp_steps_clear();
    qp_loops_clear();
    qp_rows_clear(QP_CAUSE_ROWS);
    qp_rows_clear(QP_ERROR_ROWS);
    qp_aggregates_clear();
    qp_recent_calls_clear();
    qp_file_sums_clear();
    qp_parameters_clear();
    qp_line_choice_clear();
    qp_line_times_clear();
    qp_rows_clear(QP_LOCK_ROWS);
    qp_rows_clear(QP_LOCK_EVENT_ROWS);
    qp_handoffs_clear();
    qp_spans_clear();
    qp_thread_usage_clear();
    qp_histograms_clear();
    /* The timeline begins earlier, so that it also covers the earlier time of calls in progress. */
    qp_timeline_start(qp_ticks_to_unix_ns(qp_clock_ticks()) - qp_head->window_ns / SLACK);
    qp_head->folded_statements = qp_head->folded_calls = qp_head->unasked_plans = 0;
    before_part.own_ticks = qp_own_ticks;
    before_part.lost_counters = qp_counters_lost_statements();
}

void qp_recorder_clear(void)
{
    qp_executions_clear();
    clear_sums();
    qp_plans_clear();
}

void qp_recorder_after_fork(void)
{
    qp_line_choice_after_fork();
    qp_checkpoint_after_fork();
    qp_workload_after_fork();
    qp_counters_after_fork();
    qp_calls_after_fork();
    qp_thread_usage_after_fork();
    for (int table = QP_FIRST_SUMS; table < QP_CALL_ROWS; table++) {
        qp_rows_clear((qp_table)table);
    }
    qp_loops_after_fork();
    qp_spans_after_fork();
    qp_executions_after_fork();
    qp_changes_clear();
    qp_aggregates_stop();
    qp_samples_stop();
    qp_file_sums_stop();
    qp_parameters_stop();
    qp_line_times_stop();
    bool is_lost = qp_region_is_lost();
    if (is_lost || !qp_aggregates_start() || !qp_samples_allocate() || !qp_file_sums_start() ||
        !qp_parameters_start() || !qp_line_times_start()) {
        qp_recorder_stop();
        return;
    }
    qp_recorder_clear();
    qp_head->unasked_plans = 0;
    qp_head->rounds = 0;
    begin_recording();
}

void qp_recorder_flush(void)
{
    flush_all(true);
}

void qp_recorder_flush_at_end(void)
{
    qp_line_passes_flush();
    flush_all(true);
}

/* Writes the flushed data to a part, and empties the sums. */
static bool end_part(bool carries_over)
{
    uint32_t recording = qp_recording;
    if (!qp_changes_save_before_clear() ||
        qp_recording != recording) { /* the program's code ran, and ended the recording */
        qp_exception_clear();
        return false;
    }
    if (carries_over) {
        qp_unfinished_executions_remove();
    }
    qp_written_bytes before = qp_written_so_far;
    bool is_written = qp_part_write();
    qp_written_exclude_from_usage(before);
    if (is_written) {
        qp_checkpoint_restart();
        clear_sums();
    }
    if (carries_over) {
        qp_unfinished_executions_restore();
    }
    qp_part_end();
    return is_written;
}

bool qp_recorder_end_part(void)
{
    uint32_t recording = qp_recording;
    qp_recorder_flush_at_end();
    bool is_written = qp_recording == recording && end_part(false);
    if (is_written) {
        qp_window_begin_part(qp_ticks_to_unix_ns(qp_clock_ticks()));
    }
    return is_written;
}

void qp_recorder_end_window(int64_t unix_ns)
{
    uint32_t recording = qp_recording;
    int64_t last_unix_ns = qp_head->alive_unix_ns;
    qp_line_passes_flush();
    flush_all(false);                      /* held locks are counted in the window in which they
                                            * end */
    qp_head->alive_unix_ns = last_unix_ns; /* the window ends at its last round */
    bool is_written = qp_recording == recording && end_part(true);
    if (qp_recording != recording) {
        return;
    }
    if (is_written) {
        qp_clock_adjust_to_wall(unix_ns);
        qp_window_begin(unix_ns);
        cannot_write = false;
        write_header();
        return;
    }
    write_header();
    qp_window_extend(unix_ns);
    if (!has_complained) {
        has_complained = true;
        qp_complain("a window is not written: %s; what it has is kept for the next one",
                    strerror(qp_part_write_errno()));
    }
}
