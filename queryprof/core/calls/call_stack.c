#include "calls/call_stack.h"

#include "calls/executions.h"
#include "runtime/allocation.h"
#include "runtime/compiler.h"
#include "stacks/frames.h"

/* Returns the innermost call in progress around the running frame, or NULL. Skips calls of waiting
 * greenlets. */
static QP_COLD qp_call *enclosing_call(const qp_thread *thread)
{
    qp_active_call *active = thread->active;
    while (active && active->frame && !qp_frame_is_running(thread->tstate, active->frame)) {
        active = active->below;
    }
    return (qp_call *)active;
}

static bool is_of_cursor(const qp_call *call)
{
    return call->probe->source == QP_SOURCE_TEXT || call->probe->source == QP_SOURCE_ROWS;
}

/* Returns whether a driver written in Python makes the call itself, on the same cursor: its
 * executemany calls its execute, or its callproc fetches. A generator of the program that gives
 * values to executemany may also use that cursor. It is not in the driver's file. */
static bool is_made_by_driver(const qp_call *call, const qp_call *outer)
{
    const PyObject *function = outer->probe->function;
    bool is_same = call->self && outer->self == call->self && call->probe->stands_in;
    if (!is_same || !is_of_cursor(call) || !is_of_cursor(outer) || !function ||
        !PyFunction_Check(function)) {
        return false;
    }
    qp_frame *frame = qp_frame_running(call->thread->tstate);
    PyCodeObject *code = frame ? qp_frame_code(frame) : NULL;
    PyObject *own = ((PyCodeObject *)PyFunction_GET_CODE(function))->co_filename;
    bool is = code && PyUnicode_Compare(code->co_filename, own) == 0;
    qp_frame_release(frame);
    return is;
}

/* Returns whether a call is part of its outer call, because one driver function calls another. */
static bool is_part_of(const qp_call *call, const qp_call *outer)
{
    if (is_made_by_driver(call, outer)) {
        return true;
    }
    if (qp_operation_serves_rows(call->active.operation)) {
        return outer->self == call->self && qp_operation_serves_all(outer->active.operation);
    }
    return outer->active.sql == call->active.sql &&
           outer->active.operation == call->active.operation &&
           (outer->active.frame == call->active.frame || call->probe->stands_in);
}

QP_COLD bool qp_call_begin_nested(qp_call *call)
{
    call->outer = enclosing_call(call->thread);
    call->active.below = call->thread->active;
    return call->outer && is_part_of(call, call->outer);
}

#ifdef QP_FAULT_INJECTION
bool qp_call_is_active(const qp_call *call)
{
    const qp_active_call *a = call->thread->active;
    while (a && a != &call->active) {
        a = a->below;
    }
    return a != NULL;
}
#endif

QP_COLD bool qp_call_add_free(qp_thread *thread)
{
    qp_call *call = qp_allocate(1, sizeof *call);
    if (call) {
        call->thread = thread;
        qp_call_release(call);
    }
    return call != NULL;
}

void qp_call_pause(qp_call *call)
{
    qp_call_deactivate(call);
}

bool qp_call_resume(qp_call *call)
{
    bool is_recorded = call->recording == qp_recording;
    call->outer = NULL;
    if (!is_recorded || qp_here.thread != call->thread) { /* another thread continues the call */
        if (call->execution) {
            qp_execution_abandon(call->execution);
        }
        qp_file_work_clear(&call->active.work);
        qp_call_release(call);
        return false;
    }
    call->active.frame = qp_frame_identity(call->thread->tstate);
    if (call->thread->active) {
        qp_call_begin_nested(call);
    }
    call->thread->active = &call->active;
    return true;
}

void qp_calls_clear(void)
{
    for (const qp_thread *thread = qp_threads_first(); thread; thread = thread->next) {
        for (qp_active_call *a = thread->active; a; a = a->below) {
            a->meter = NULL;
        }
    }
}

void qp_calls_after_fork(void)
{
    for (qp_active_call *a = qp_here.thread ? qp_here.thread->active : NULL; a; a = a->below) {
        a->meter = NULL;
        ((qp_call *)a)->execution = NULL;
    }
}
