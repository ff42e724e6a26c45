#include "calls/probe.h"

#include <string.h>

#include "calls/call_stack.h"
#include "calls/first_run.h"
#include "context/spans.h"
#include "context/statement_labels.h"
#include "lines/line_choice.h"
#include "runtime/assertion.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "sharing/shared_region.h"
#include "stacks/call_paths.h"
#include "stacks/submitter.h"
#include "statements/statements.h"
#include "sums/samples.h"

enum { PAGE_SAMPLING = 16 }; /* page fetches are counted in 1 of this many executions */

static uint64_t executions; /* executions begun so far; their serial numbers */

static inline void push_active(qp_call *call, qp_meter *meter)
{
    call->active.meter = meter;
    call->thread->active = &call->active;
    call->nested_ticks = 0;
    call->active.start_ticks = qp_clock_ticks();
}

/* Begins an operation that fetches rows. The operation belongs to its cursor's execution. */
static inline bool begin_fetch(qp_call *call)
{
    if (call->thread->active && qp_call_begin_nested(call)) {
        return false;
    }
    qp_execution *e = call->self ? qp_execution_of_cursor_cached(call->thread, call->self) : NULL;
    call->thread->serving = e;
    call->active.frame = qp_frame_cheap_identity(call->thread->tstate);
    /* If the execution is in use, the driver will refuse this recursive call. The call is counted,
     * but not for the cursor's execution. */
    call->execution = e && !e->in_use ? e : NULL;
    if (!call->execution) {
        push_active(call, NULL);
        return true;
    }
    if (e->ignored) {
        return false;
    }
    if (e->pending.calls && e->pending.operation != call->active.operation) {
        qp_execution_flush(e, NULL, NULL, NULL);
    }
    e->in_use = true;
    push_active(call, &e->meter);
    return true;
}

/* Finds the statement of a call to a driver written in Python. Returns false if the recording has
 * ended in the meantime. */
static QP_COLD bool find_statement_and_path(const qp_call *call, uint32_t *statement,
                                            uint32_t *path, bool *is_awaited)
{
    const qp_probe *probe = call->probe;
    *is_awaited = probe->is_awaited;
    if (probe->is_awaited && call->thread->awaited_path > QP_PATH_OTHER) {
        *path = call->thread->awaited_path;
    }
    /* Reading the text may run the code of a query object. */
    *statement = probe->source == QP_SOURCE_TEXT
                     ? qp_statement_of_query(call->active.sql, call->self, qp_dialect_of(probe),
                                             probe->system)
                     : qp_operation_statements[call->active.operation];
    return call->recording == qp_recording;
}

/* Counts an execution for its span and its submitter, and labels its statement. */
static QP_COLD void count_for_span(qp_execution *e, bool is_query)
{
    if (e->ignored) {
        return;
    }
    qp_span_count_execution(e, is_query);
    if (is_query) {
        qp_label_statement(e->meter.key.statement);
    }
    qp_submitter *submitter = qp_running_submitter();
    if (submitter) {
        submitter->calls++;
    }
}

/* Begins an operation that starts an execution: finds the statement, the call path and the span. */
static inline bool begin_execution(qp_call *call)
{
    qp_thread *thread = call->thread;
    uint32_t path;
    bool ours = qp_call_path_find(thread->tstate, &path);
    call->active.frame = qp_frame_identity(thread->tstate);
    if (thread->active && qp_call_begin_nested(call)) {
        return false;
    }
    uint32_t statement;
    bool is_awaited = false;
    if (!call->probe->stands_in) {
        statement = call->probe->source == QP_SOURCE_TEXT
                        ? qp_statement_of_object(call->active.sql)
                        : qp_operation_statements[call->active.operation];
    } else if (!find_statement_and_path(call, &statement, &path, &is_awaited)) {
        return false;
    }
    /* Awaited calls may last long, and many may be in progress at once, so they would use up all
     * slots of the table. */
    qp_execution *e = is_awaited ? NULL : qp_execution_reserve_slot();
    if (!e) {
        e = &call->spare;
    }
    uint32_t random = qp_thread_random(thread);
    int64_t span = qp_running_span();
    call->execution = e;
    e->ignored = !ours;
    e->sampled_stack = ((random >> 16) & qp_stack_mask) == 0;
    e->serial = ++executions;
    e->pending.calls = 0;
    e->meter = (qp_meter){
        .key = {.statement = statement,
                .path = path,
                .span = qp_span_name_number(span),
                .thread = thread->number,
                .operation = call->active.operation},
        .counts = ours && (call->active.operation == QP_EXECUTE ||
                           call->active.operation == QP_EXECUTEMANY),
        .drops = ours && call->probe->drops,
        .sampled = random % PAGE_SAMPLING == 0 || qp_line_is_new(statement, path),
    };
    e->span = span;
    e->run = 0;
    if (span || qp_label_variable || qp_here.submitter) {
        count_for_span(e, call->probe->source == QP_SOURCE_TEXT);
    }
    PyObject *connection = qp_connection_of(call);
    call->active.db = connection ? qp_connection_db(connection) : NULL;
    if (connection && (e->meter.drops || !qp_plan_is_known(connection, statement) ||
                       qp_statement_is_not_yet_accepted(statement))) {
        e->meter.sampled = true; /* otherwise a statement with few executions might never be
                                  * sampled */
        qp_first_run_begin(call, connection, ours);
    }
    push_active(call, &e->meter);
    /* Readers see a call in progress: it has a start and no duration. */
    e->started_ticks = call->active.start_ticks;
    e->ticks = 0;
    return true;
}

static inline bool begin_call(qp_call *call, const qp_probe *probe, PyObject *self,
                              PyObject *argument, PyObject *parameters)
{
    if (qp_share_awaited) {
        qp_region_share();
    }
    call->probe = probe;
    call->active.operation = probe->operation;
    call->self = self;
    call->active.sql = argument;
    call->recording = qp_recording;
    if (probe->source == QP_SOURCE_ROWS) {
        return begin_fetch(call);
    }
    if (qp_pending_counters_due) {
        qp_pending_counters_collect();
    }
    call->parameters = parameters;
    if (probe->source == QP_SOURCE_EXIT) {
        call->active.operation = argument == Py_None ? QP_COMMIT : QP_ROLLBACK;
        call->active.sql = NULL;
    }
    return begin_execution(call);
}

/* Begins a call whose cost is measured. */
static QP_COLD qp_call *begin_measured(const qp_probe *probe, PyObject *self, PyObject *argument,
                                       PyObject *parameters)
{
    qp_own_part part = qp_own_part_begin();
    qp_own_countdown++; /* the call below must not count down a second time */
    qp_call *call = qp_call_begin(probe, self, argument, parameters);
    qp_own_part_end(&qp_own_begins, part, call ? call->active.start_ticks : qp_clock_ticks());
    if (call) {
        call->active.is_measured = true;
        call->active.own_ticks = 0;
    }
    return call;
}

qp_call *qp_call_begin(const qp_probe *probe, PyObject *self, PyObject *argument,
                       PyObject *parameters)
{
    if (qp_own_time_is_measured()) {
        return begin_measured(probe, self, argument, parameters);
    }
    qp_thread *thread = qp_thread_here();
    if (!thread || (!thread->free_calls && !qp_call_add_free(thread))) {
        return NULL;
    }
    qp_call *call = thread->free_calls;
    thread->free_calls = call->next_free; /* first, because a call that begins inside this call
                                           * takes another free call */
    QP_ASSERT(call->thread == thread && !call->outer && !call->active.below);
    QP_ASSERT(!call->active.has_more && !call->active.statement && !call->connection);
    QP_ASSERT(!call->active.is_measured);
    if (!begin_call(call, probe, self, argument, parameters)) {
        call->outer = NULL;
        call->active.below = NULL;
        qp_call_release(call);
        return NULL;
    }
    return call;
}
