/* The probe: the work before and after a call of the driver.
 *
 * qp_call_begin and qp_call_end run before and after the driver's function, however the function
 * was attached. qp_fetch_begin and qp_fetch_end replace them for fetches that need no table lookup.
 * Only these functions change data that threads share, and they hold the GIL. A free-threaded build
 * would need a lock here and in recorder.h.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "calls/call.h"
#include "calls/executions.h"
#include "counters/counters.h"
#include "counters/plans.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/operations.h"
#include "runtime/periodic_work.h"
#include "runtime/thread_local.h"
#include "sql/words.h"
#include "stacks/frames.h"
#include "threads/threads.h"

/* Starts measuring a call of the running thread. Returns the call (owned by the thread, valid until
 * qp_call_end), or NULL if the call is not measured. Never raises. */
qp_call *qp_call_begin(const qp_probe *probe, PyObject *self, PyObject *argument,
                       PyObject *parameters);

/* Ends measuring a call that returned `result` (borrowed; NULL if the call raised, or found no
 * further row). Frees the call, and preserves the current exception. */
void qp_call_end(qp_call *call, PyObject *result);

/* Returns whether the thread fetches from the same execution as last time. Almost every fetch does,
 * and such a fetch needs no table lookup. */
static inline bool qp_fetch_continues(const qp_thread *thread, PyObject *self,
                                      qp_operation operation)
{
    const qp_execution *e = thread ? thread->serving : NULL;
    return e && e->cursor == self && !e->in_use && !e->ignored && !qp_here.muted &&
           thread->recording == qp_recording && thread->tstate == PyThreadState_Get() &&
           !thread->active && thread->free_calls &&
           (!e->pending.calls || e->pending.operation == operation);
}

/* Starts measuring a fetch. */
static inline qp_call *qp_fetch_begin(const qp_probe *probe, qp_thread *thread)
{
    qp_execution *e = thread->serving;
    qp_call *call = thread->free_calls;
    thread->free_calls = call->next_free;
    call->active.meter = &e->meter;
    call->active.frame = qp_frame_cheap_identity(thread->tstate);
    thread->active = &call->active;
    call->probe = probe;
    call->execution = e;
    call->active.operation = probe->operation;
    call->nested_ticks = 0;
    call->recording = thread->recording;
    e->in_use = true;
    call->active.start_ticks = qp_clock_ticks();
    return call;
}

/* Ends measuring a fetch of one row; unusual cases go to qp_call_end. */
static QP_INLINE void qp_fetch_end(qp_call *call, PyObject *result)
{
    uint64_t end_ticks = qp_clock_ticks();
    qp_execution *e = call->execution;
    qp_pending_rows *p = &e->pending;
    int64_t ticks = qp_elapsed_ticks(call->active.start_ticks, end_ticks);
    qp_thread *thread = call->thread;
    if (!result || call->nested_ticks || call->active.work.any || thread->active != &call->active ||
        thread->running_loop || call->recording != qp_recording || ticks >= e->notable_ticks ||
        !qp_clock.counter || end_ticks >= qp_periodic_due_ticks) {
        qp_call_end(call, result);
        return;
    }
    thread->active = NULL;
    thread->database_ticks += ticks;
    call->next_free = thread->free_calls;
    thread->free_calls = call;
    e->in_use = false;
    e->notable_ticks -= ticks;
    bool row = call->active.operation == QP_NEXT || result != Py_None;
    p->last_ticks = end_ticks;
    if (!p->calls) {
        p->operation = call->active.operation;
        p->errors = p->nested_ticks = 0;
        p->rows = row;
        p->ticks = p->min_ticks = p->max_ticks = ticks;
        p->timed_calls = 1;
        qp_release_store(&p->calls, 1); /* last: from here on the fields are valid */
        qp_execution_mark_pending(e);
        return;
    }
    p->calls++;
    p->rows += row;
    p->timed_calls++;
    p->ticks += ticks;
    p->min_ticks = ticks < p->min_ticks ? ticks : p->min_ticks;
    p->max_ticks = ticks > p->max_ticks ? ticks : p->max_ticks;
}
