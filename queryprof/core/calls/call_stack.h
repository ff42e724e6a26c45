/* The probed calls in progress of a thread. Each call is inside the previous call, or independent
 * of that call if greenlets switch. */
#pragma once

#include <stdbool.h>

#include "calls/call.h"
#include "runtime/assertion.h"

#ifdef QP_FAULT_INJECTION
/* Returns whether a call is in progress. */
bool qp_call_is_active(const qp_call *call);
#endif

/* Returns a call to its thread's free list. */
static inline void qp_call_release(qp_call *call)
{
    QP_ASSERT(!qp_call_is_active(call));
    call->next_free = call->thread->free_calls;
    call->thread->free_calls = call;
}

/* Removes a call from the calls in progress. With greenlets, the call need not be the innermost. */
static inline void qp_call_deactivate(qp_call *call)
{
    qp_active_call **place = &call->thread->active;
    if (*place == &call->active && !call->active.below) {
        *place = NULL;
        return;
    }
    while (*place && *place != &call->active) {
        place = &(*place)->below;
    }
    if (*place) {
        *place = call->active.below;
    }
    call->active.below = NULL;
}

/* Begins a call while other calls of its thread are in progress. Returns whether the call is part
 * of another call, and is therefore not counted. */
bool qp_call_begin_nested(qp_call *call);

/* Adds a call to the thread's free list. Returns false if out of memory. */
bool qp_call_add_free(qp_thread *thread);

/* Pause and resume an awaited call while other code runs. qp_call_resume returns false if the
 * recording has ended or another thread continues the call. The call is then in the free list. */
void qp_call_pause(qp_call *call);
bool qp_call_resume(qp_call *call);

/* Must be called when recording ends: SQLite's reports for the calls in progress no longer
 * count. */
void qp_calls_clear(void);

/* In a forked child: clears the executions of the running thread's calls in progress. */
void qp_calls_after_fork(void);
