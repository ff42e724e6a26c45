#include "memory/columns.h"

#include "memory/execution_row.h"
#include "memory/file_rows.h"
#include "memory/header.h"
#include "memory/sampled_row.h"
#include "memory/span_rows.h"

#define AS(row, name, member, code) \
    {name, code, (uint16_t)offsetof(row, member), (uint16_t)sizeof(((row *)0)->member)}
#define COLUMN(row, member, code) AS(row, #member, member, code)
#define HISTOGRAM(row, name, member)                                                          \
    AS(row, name "_spread", member.spread, 'I'), AS(row, name "_bucket", member.bucket, 'H'), \
        AS(row, name "_count", member.count, 'H')
#define DISTRIBUTION(row, member)                           \
    AS(row, #member "_number", member.count, 'q'),          \
        AS(row, #member "_total_ns", member.total_ns, 'q'), \
        AS(row, #member "_max_ns", member.max_ns, 'q'), HISTOGRAM(row, #member, member.histogram)
#define KEY(row)                                                              \
    AS(row, "statement", key.statement, 'I'), AS(row, "path", key.path, 'I'), \
        AS(row, "span", key.span, 'H'), AS(row, "thread", key.thread, 'H'),   \
        AS(row, "operation", key.operation, 'I')
#define CAUSES(row) \
    AS(row, "database_ticks", causes.database_ticks, 'q'), AS(row, "first_cause", causes.first, 'I')
#define USAGE(row)                                                                      \
    AS(row, "user_ns", usage.user_ns, 'q'), AS(row, "system_ns", usage.system_ns, 'q'), \
        AS(row, "voluntary_switches", usage.voluntary_switches, 'q'),                   \
        AS(row, "involuntary_switches", usage.involuntary_switches, 'q'),               \
        AS(row, "read_bytes", usage.read_bytes, 'q'),                                   \
        AS(row, "written_bytes", usage.written_bytes, 'q'),                             \
        AS(row, "read_calls", usage.read_calls, 'q'),                                   \
        AS(row, "write_calls", usage.write_calls, 'q')
#define END {0}

static const qp_column texts[] = {{"bytes", 's', 0, 1}, END};

static const qp_column statements[] = {
    COLUMN(qp_statement_row, text, 't'), COLUMN(qp_statement_row, note, 't'),
    COLUMN(qp_statement_row, texts, 'I'), COLUMN(qp_statement_row, system, 'B'), END};

static const qp_column lines[] = {
    COLUMN(qp_line_row, function, 't'),   COLUMN(qp_line_row, file, 't'),
    COLUMN(qp_line_row, line, 'I'),       COLUMN(qp_line_row, kind, 'I'),
    COLUMN(qp_line_row, first_line, 'I'), END};

static const qp_column stacks[] = {COLUMN(qp_stack_row, outer, 'I'),
                                   COLUMN(qp_stack_row, line, 'I'), END};

static const qp_column spans[] = {COLUMN(qp_span_row, name, 't'),
                                  COLUMN(qp_span_row, count, 'q'),
                                  COLUMN(qp_span_row, errors, 'q'),
                                  COLUMN(qp_span_row, cpu_count, 'q'),
                                  COLUMN(qp_span_row, cpu_ns, 'q'),
                                  COLUMN(qp_span_row, database_ns, 'q'),
                                  DISTRIBUTION(qp_span_row, durations),
                                  DISTRIBUTION(qp_span_row, queries),
                                  END};

static const qp_column threads[] = {COLUMN(qp_thread_row, name, 't'),
                                    COLUMN(qp_thread_row, is_used, 'I'), USAGE(qp_thread_row), END};

static const qp_column tasks[] = {COLUMN(qp_task_row, thread, 'I'),
                                  COLUMN(qp_task_row, kernel_id, 'q'),
                                  USAGE(qp_task_row),
                                  AS(qp_task_row, "base_user_ns", base.user_ns, 'q'),
                                  AS(qp_task_row, "base_system_ns", base.system_ns, 'q'),
                                  AS(qp_task_row, "base_read_bytes", base.read_bytes, 'q'),
                                  AS(qp_task_row, "base_written_bytes", base.written_bytes, 'q'),
                                  END};

static const qp_column loops[] = {
    COLUMN(qp_loop, kind, 't'),        COLUMN(qp_loop, thread, 'I'),
    COLUMN(qp_loop, has_steps, 'I'),   COLUMN(qp_loop, runs, 'q'),
    COLUMN(qp_loop, run_ticks, 'q'),   COLUMN(qp_loop, busy_ticks, 'q'),
    COLUMN(qp_loop, steps, 'q'),       COLUMN(qp_loop, waiting, 'q'),
    COLUMN(qp_loop, waiting_max, 'q'), DISTRIBUTION(qp_loop, timer),
    DISTRIBUTION(qp_loop, beat),       END};

static const qp_column steps[] = {COLUMN(qp_step_row, loop, 'I'),
                                  COLUMN(qp_step_row, line, 'I'),
                                  COLUMN(qp_step_row, gc_ticks, 'q'),
                                  COLUMN(qp_step_row, max_before_ns, 'q'),
                                  DISTRIBUTION(qp_step_row, durations),
                                  CAUSES(qp_step_row),
                                  END};

static const qp_column plans[] = {COLUMN(qp_plan_row, statement, 'I'),
                                  COLUMN(qp_plan_row, database, 't'),
                                  COLUMN(qp_plan_row, tree, 't'), END};

#define COUNTER(name) AS(qp_aggregate, #name, counters.name, 'q'),

static const qp_column aggregates[] = {
    COLUMN(qp_aggregate, sequence, 'I'),
    KEY(qp_aggregate),
    COLUMN(qp_aggregate, count, 'q'),
    COLUMN(qp_aggregate, errors, 'q'),
    COLUMN(qp_aggregate, rows, 'q'),
    COLUMN(qp_aggregate, total_ns, 'q'),
    COLUMN(qp_aggregate, self_ns, 'q'),
    COLUMN(qp_aggregate, execution_sum_sq_ns2, 'd'),
    QP_COUNTERS(COUNTER) AS(qp_aggregate, "min_ns", now.min_ns, 'q'),
    AS(qp_aggregate, "max_ns", now.max_ns, 'q'),
    AS(qp_aggregate, "execution_max_ns", now.execution_max_ns, 'q'),
    AS(qp_aggregate, "min_before_ns", before.min_ns, 'q'),
    AS(qp_aggregate, "max_before_ns", before.max_ns, 'q'),
    AS(qp_aggregate, "execution_max_before_ns", before.execution_max_ns, 'q'),
    HISTOGRAM(qp_aggregate, "durations", histogram),
    COLUMN(qp_aggregate, carried, 'q'),
    END};

static const qp_column spreads[] = {COLUMN(qp_spread_row, octaves, 'H'), END};

static const qp_column octaves[] = {COLUMN(qp_octave_row, counts, 'I'), END};

static const qp_column errors[] = {KEY(qp_error_row), AS(qp_error_row, "exception", name, 't'),
                                   COLUMN(qp_error_row, count, 'q'), END};

static const qp_column exemplars[] = {KEY(qp_exemplar_row),
                                      COLUMN(qp_exemplar_row, serial, 'Q'),
                                      COLUMN(qp_exemplar_row, started_unix_ns, 'q'),
                                      COLUMN(qp_exemplar_row, duration_ns, 'q'),
                                      COLUMN(qp_exemplar_row, rows, 'q'),
                                      COLUMN(qp_exemplar_row, stack, 'I'),
                                      COLUMN(qp_exemplar_row, sql, 't'),
                                      COLUMN(qp_exemplar_row, parameters, 't'),
                                      COLUMN(qp_exemplar_row, sequence, 'I'),
                                      END};

static const qp_column stack_samples[] = {
    COLUMN(qp_stack_sample_row, statement, 'I'), COLUMN(qp_stack_sample_row, stack, 'I'),
    COLUMN(qp_stack_sample_row, executions, 'q'), COLUMN(qp_stack_sample_row, ns, 'q'), END};

static const qp_column intervals[] = {COLUMN(qp_interval_row, calls, 'q'),
                                      COLUMN(qp_interval_row, rows, 'q'),
                                      COLUMN(qp_interval_row, self_ns, 'q'), END};

static const qp_column repeats[] = {COLUMN(qp_repeat_row, span, 'I'),
                                    COLUMN(qp_repeat_row, statement, 'I'),
                                    COLUMN(qp_repeat_row, path, 'I'),
                                    COLUMN(qp_repeat_row, spans, 'q'),
                                    COLUMN(qp_repeat_row, executions, 'q'),
                                    COLUMN(qp_repeat_row, most, 'q'),
                                    END};

static const qp_column statuses[] = {COLUMN(qp_status_row, span, 'I'),
                                     COLUMN(qp_status_row, status, 'i'),
                                     COLUMN(qp_status_row, count, 'q'), END};

static const qp_column handoffs[] = {COLUMN(qp_handoff_row, kind, 't'),
                                     COLUMN(qp_handoff_row, path, 'I'),
                                     COLUMN(qp_handoff_row, span, 'I'),
                                     COLUMN(qp_handoff_row, count, 'q'),
                                     COLUMN(qp_handoff_row, errors, 'q'),
                                     COLUMN(qp_handoff_row, cancelled, 'q'),
                                     DISTRIBUTION(qp_handoff_row, queue),
                                     DISTRIBUTION(qp_handoff_row, run),
                                     DISTRIBUTION(qp_handoff_row, handback),
                                     DISTRIBUTION(qp_handoff_row, total),
                                     END};

static const qp_column stalls[] = {COLUMN(qp_stall_row, loop, 'I'),
                                   COLUMN(qp_stall_row, line, 'I'),
                                   COLUMN(qp_stall_row, path, 'I'),
                                   COLUMN(qp_stall_row, stack, 'I'),
                                   COLUMN(qp_stall_row, count, 'q'),
                                   COLUMN(qp_stall_row, total_ns, 'q'),
                                   COLUMN(qp_stall_row, max_ns, 'q'),
                                   COLUMN(qp_stall_row, gc_ns, 'q'),
                                   COLUMN(qp_stall_row, gil_ns, 'q'),
                                   COLUMN(qp_stall_row, cpu_ns, 'q'),
                                   COLUMN(qp_stall_row, cpu_of_ns, 'q'),
                                   COLUMN(qp_stall_row, delayed, 'q'),
                                   COLUMN(qp_stall_row, delay_ns, 'q'),
                                   COLUMN(qp_stall_row, samples, 'q'),
                                   CAUSES(qp_stall_row),
                                   END};

static const qp_column causes[] = {
    COLUMN(qp_cause_row, next, 'I'),  COLUMN(qp_cause_row, statement, 'I'),
    COLUMN(qp_cause_row, path, 'I'),  COLUMN(qp_cause_row, calls, 'q'),
    COLUMN(qp_cause_row, ticks, 'q'), END};

#define FILE_SUM(name) AS(qp_file_work_row, #name, sums.name, 'q'),
static const qp_column file_work[] = {KEY(qp_file_work_row),
                                      COLUMN(qp_file_work_row, calls, 'q'),
                                      COLUMN(qp_file_work_row, lock_waits, 'q'),
                                      COLUMN(qp_file_work_row, max_lock_ticks, 'q'),
                                      COLUMN(qp_file_work_row, max_lock_before_ticks, 'q'),
                                      QP_FILE_SUMS(FILE_SUM) END};

#define LOCK(row)                                                                           \
    AS(row, "kind", lock.kind, 'I'), AS(row, "database", lock.database, 't'),               \
        AS(row, "statement", lock.key.statement, 'I'), AS(row, "path", lock.key.path, 'I'), \
        AS(row, "span", lock.key.span, 'H'), AS(row, "thread", lock.key.thread, 'H'),       \
        AS(row, "end_statement", lock.end_statement, 'I'), AS(row, "end_path", lock.end_path, 'I')

static const qp_column locks[] = {LOCK(qp_lock_row),
                                  AS(qp_lock_row, "count", sums.count, 'q'),
                                  AS(qp_lock_row, "total_ticks", sums.ticks, 'q'),
                                  AS(qp_lock_row, "max_ticks", sums.max_ticks, 'q'),
                                  COLUMN(qp_lock_row, max_before_ticks, 'q'),
                                  AS(qp_lock_row, "database_ticks", sums.database_ticks, 'q'),
                                  AS(qp_lock_row, "database_of_ticks", sums.database_of_ticks, 'q'),
                                  AS(qp_lock_row, "changed_rows", sums.changed_rows, 'q'),
                                  AS(qp_lock_row, "log_bytes", sums.log_bytes, 'q'),
                                  END};

static const qp_column lock_events[] = {LOCK(qp_lock_event_row),
                                        COLUMN(qp_lock_event_row, connection, 'I'),
                                        COLUMN(qp_lock_event_row, writes, 'I'),
                                        COLUMN(qp_lock_event_row, start_unix_ns, 'q'),
                                        COLUMN(qp_lock_event_row, duration_ns, 'q'),
                                        END};

#define ENDED(name, code) AS(qp_slow_span_row, #name, ended.name, code)

static const qp_column slow_spans[] = {COLUMN(qp_slow_span_row, sequence, 'I'),
                                       COLUMN(qp_slow_span_row, first_run, 'I'),
                                       COLUMN(qp_slow_span_row, runs, 'I'),
                                       ENDED(span, 'I'),
                                       ENDED(thread, 'I'),
                                       ENDED(status, 'i'),
                                       ENDED(failed, 'I'),
                                       ENDED(started_unix_ns, 'q'),
                                       ENDED(duration_ns, 'q'),
                                       ENDED(database_ns, 'q'),
                                       ENDED(executions, 'q'),
                                       ENDED(queue_ns, 'q'),
                                       ENDED(cpu_ns, 'q'),
                                       END};

static const qp_column span_runs[] = {KEY(qp_span_run_row),
                                      COLUMN(qp_span_run_row, start_ticks, 'q'),
                                      COLUMN(qp_span_run_row, end_ticks, 'q'),
                                      COLUMN(qp_span_run_row, executions, 'q'),
                                      COLUMN(qp_span_run_row, self_ns, 'q'),
                                      COLUMN(qp_span_run_row, rows, 'q'),
                                      END};

static const qp_column stall_events[] = {COLUMN(qp_stall_event_row, loop, 'I'),
                                         COLUMN(qp_stall_event_row, line, 'I'),
                                         COLUMN(qp_stall_event_row, path, 'I'),
                                         COLUMN(qp_stall_event_row, stack, 'I'),
                                         COLUMN(qp_stall_event_row, started_unix_ns, 'q'),
                                         COLUMN(qp_stall_event_row, duration_ns, 'q'),
                                         END};

static const qp_column parameters[] = {COLUMN(qp_parameter_row, statement, 'I'),
                                       COLUMN(qp_parameter_row, path, 'I'),
                                       COLUMN(qp_parameter_row, samples, 'q'),
                                       COLUMN(qp_parameter_row, repeats, 'q'),
                                       COLUMN(qp_parameter_row, offsets, 'q'),
                                       COLUMN(qp_parameter_row, skipped, 'q'),
                                       COLUMN(qp_parameter_row, open_patterns, 'q'),
                                       COLUMN(qp_parameter_row, slow, 'q'),
                                       END};

static const qp_column line_times[] = {
    COLUMN(qp_line_time_row, statement, 'I'),   COLUMN(qp_line_time_row, path, 'I'),
    COLUMN(qp_line_time_row, passes, 'q'),      COLUMN(qp_line_time_row, executions, 'q'),
    COLUMN(qp_line_time_row, others, 'q'),      COLUMN(qp_line_time_row, ns, 'q'),
    COLUMN(qp_line_time_row, left_out_ns, 'q'), COLUMN(qp_line_time_row, loop_rows, 'q'),
    COLUMN(qp_line_time_row, loop_ns, 'q'),     END};

static const qp_column recent_calls[] = {COLUMN(qp_recent_call_row, started_ticks, 'Q'),
                                         COLUMN(qp_recent_call_row, duration_ns, 'f'),
                                         COLUMN(qp_recent_call_row, aggregate, 'I'), END};

static const qp_column calls[] = {
    COLUMN(qp_execution, stage, 'I'),
    AS(qp_execution, "in_use", in_use, 'B'),
    AS(qp_execution, "ignored", ignored, 'B'),
    AS(qp_execution, "statement", meter.key.statement, 'I'),
    AS(qp_execution, "path", meter.key.path, 'I'),
    AS(qp_execution, "span", meter.key.span, 'H'),
    AS(qp_execution, "thread", meter.key.thread, 'H'),
    AS(qp_execution, "operation", meter.key.operation, 'I'),
    COLUMN(qp_execution, serial, 'Q'),
    COLUMN(qp_execution, started_ticks, 'Q'),
    COLUMN(qp_execution, ticks, 'q'),
    COLUMN(qp_execution, nested_ticks, 'q'),
    COLUMN(qp_execution, rows, 'q'),
    COLUMN(qp_execution, duration_ns, 'q'),
    COLUMN(qp_execution, settled_ns, 'q'),
    COLUMN(qp_execution, began_row, 'I'),
    COLUMN(qp_execution, count_before, 'q'),
    AS(qp_execution, "pending_stage", pending.stage, 'I'),
    AS(qp_execution, "pending_row", pending.row, 'I'),
    AS(qp_execution, "pending_count_before", pending.count_before, 'q'),
    AS(qp_execution, "pending_operation", pending.operation, 'I'),
    AS(qp_execution, "pending_calls", pending.calls, 'q'),
    AS(qp_execution, "pending_errors", pending.errors, 'q'),
    AS(qp_execution, "pending_rows", pending.rows, 'q'),
    AS(qp_execution, "pending_ticks", pending.ticks, 'q'),
    AS(qp_execution, "pending_nested_ticks", pending.nested_ticks, 'q'),
    AS(qp_execution, "pending_min_ticks", pending.min_ticks, 'q'),
    AS(qp_execution, "pending_max_ticks", pending.max_ticks, 'q'),
    AS(qp_execution, "pending_last_ticks", pending.last_ticks, 'Q'),
    AS(qp_execution, "pending_timed_calls", pending.timed_calls, 'q'),
    END};

static const qp_column held_locks[] = {COLUMN(qp_held_row, recording, 'I'), KEY(qp_held_row),
                                       COLUMN(qp_held_row, identity, 'Q'),
                                       COLUMN(qp_held_row, start_ticks, 'Q'), END};

#define TABLE(table, row, most, its_columns) \
    [table] = {#its_columns, sizeof(row), most, its_columns}

const qp_table_facts qp_tables[QP_TABLES] = {
    TABLE(QP_TEXTS, char, QP_TEXT_BYTES, texts),
    TABLE(QP_STATEMENT_ROWS, qp_statement_row, QP_STATEMENTS, statements),
    TABLE(QP_LINE_ROWS, qp_line_row, QP_LINES, lines),
    TABLE(QP_STACK_ROWS, qp_stack_row, QP_STACKS, stacks),
    TABLE(QP_SPAN_ROWS, qp_span_row, QP_NAMES, spans),
    TABLE(QP_THREAD_ROWS, qp_thread_row, QP_NAMES, threads),
    TABLE(QP_LOOP_ROWS, qp_loop, QP_LOOPS, loops),
    TABLE(QP_STEP_ROWS, qp_step_row, QP_STEPS, steps),
    TABLE(QP_PLAN_ROWS, qp_plan_row, QP_PLANS, plans),
    TABLE(QP_AGGREGATE_ROWS, qp_aggregate, QP_AGGREGATES, aggregates),
    TABLE(QP_SPREAD_ROWS, qp_spread_row, QP_SPREADS, spreads),
    TABLE(QP_OCTAVE_ROWS, qp_octave_row, QP_OCTAVE_COUNTS, octaves),
    TABLE(QP_ERROR_ROWS, qp_error_row, QP_ERRORS, errors),
    TABLE(QP_EXEMPLAR_ROWS, qp_exemplar_row, QP_EXEMPLARS, exemplars),
    TABLE(QP_STACK_SAMPLE_ROWS, qp_stack_sample_row, QP_STACK_SAMPLES, stack_samples),
    TABLE(QP_TIMELINE_ROWS, qp_interval_row, 2 * QP_TIMELINE_INTERVALS, intervals),
    TABLE(QP_REPEAT_ROWS, qp_repeat_row, QP_REPEATS, repeats),
    TABLE(QP_STATUS_ROWS, qp_status_row, QP_STATUSES, statuses),
    TABLE(QP_SLOW_SPAN_ROWS, qp_slow_span_row, QP_SLOW_SPANS, slow_spans),
    TABLE(QP_SPAN_RUN_ROWS, qp_span_run_row, QP_SLOW_SPANS *QP_SPAN_RUNS, span_runs),
    TABLE(QP_HANDOFF_ROWS, qp_handoff_row, QP_HANDOFFS, handoffs),
    TABLE(QP_STALL_ROWS, qp_stall_row, QP_STALLS, stalls),
    TABLE(QP_STALL_EVENT_ROWS, qp_stall_event_row, QP_STALL_EVENTS, stall_events),
    TABLE(QP_CAUSE_ROWS, qp_cause_row, QP_CAUSES, causes),
    TABLE(QP_TASK_ROWS, qp_task_row, QP_TASKS, tasks),
    TABLE(QP_FILE_WORK_ROWS, qp_file_work_row, QP_FILE_WORKS, file_work),
    TABLE(QP_LOCK_ROWS, qp_lock_row, QP_LOCKS, locks),
    TABLE(QP_LOCK_EVENT_ROWS, qp_lock_event_row, QP_LOCK_EVENTS, lock_events),
    TABLE(QP_PARAMETER_ROWS, qp_parameter_row, QP_PARAMETERS, parameters),
    TABLE(QP_LINE_TIME_ROWS, qp_line_time_row, QP_LINE_TIMES, line_times),
    TABLE(QP_RECENT_CALL_ROWS, qp_recent_call_row, QP_RECENT_CALLS, recent_calls),
    TABLE(QP_HELD_ROWS, qp_held_row, QP_HELD, held_locks),
    TABLE(QP_CALL_ROWS, qp_execution, QP_CALLS, calls),
};

const qp_column qp_header_columns[] = {COLUMN(qp_header, state, 'I'),
                                       COLUMN(qp_header, pid, 'q'),
                                       COLUMN(qp_header, start_time, 'q'),
                                       COLUMN(qp_header, pid_namespace, 'Q'),
                                       COLUMN(qp_header, boot, 's'),
                                       COLUMN(qp_header, facts, 't'),
                                       COLUMN(qp_header, timeline_half, 'I'),
                                       COLUMN(qp_header, timeline_shift, 'I'),
                                       COLUMN(qp_header, timeline_first, 'q'),
                                       COLUMN(qp_header, start_unix_ns, 'q'),
                                       COLUMN(qp_header, alive_unix_ns, 'q'),
                                       COLUMN(qp_header, ns_per_tick, 'd'),
                                       COLUMN(qp_header, base_ticks, 'Q'),
                                       COLUMN(qp_header, base_unix_ns, 'q'),
                                       COLUMN(qp_header, folded_statements, 'Q'),
                                       COLUMN(qp_header, folded_calls, 'Q'),
                                       COLUMN(qp_header, lost_counters, 'Q'),
                                       COLUMN(qp_header, unseen_files, 'Q'),
                                       COLUMN(qp_header, unasked_plans, 'Q'),
                                       COLUMN(qp_header, own_read_bytes, 'q'),
                                       COLUMN(qp_header, own_written_bytes, 'q'),
                                       COLUMN(qp_header, own_ns, 'q'),
                                       COLUMN(qp_header, rounds, 'I'),
                                       COLUMN(qp_header, part_begun, 'I'),
                                       COLUMN(qp_header, part_ended, 'I'),
                                       COLUMN(qp_header, lost_windows, 'I'),
                                       COLUMN(qp_header, window_ns, 'q'),
                                       COLUMN(qp_header, part_start_unix_ns, 'q'),
                                       COLUMN(qp_header, counts, 'I'),
                                       END};
