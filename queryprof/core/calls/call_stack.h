/* The probed calls of a thread that are in progress: each inside the one before it, or beside it
 * where greenlets switch.
 */
#ifndef QP_CALLS_CALL_STACK_H
#define QP_CALLS_CALL_STACK_H

#include <stdbool.h>

#include "calls/call.h"
#include "runtime/assertion.h"

#ifdef QP_FAULT_INJECTION
/* Whether a call is in progress. */
bool qp_call_is_active(const qp_call *call);
#endif

/* Gives a call back to its thread's free ones. */
static inline void qp_call_give_back(qp_call *call)
{
    QP_ASSERT(!qp_call_is_active(call));
    call->next_free = call->thread->free_calls;
    call->thread->free_calls = call;
}

/* Takes a call out of those in progress; with greenlets it need not be the innermost. */
static inline void qp_call_leave(qp_call *call)
{
    qp_active **place = &call->thread->active;
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

/* Other calls of the thread are in progress. True: this one is part of one of them. */
bool qp_call_nest(qp_call *call);

/* A call for the thread to use, among its free ones from here on; false without memory. */
bool qp_call_add(qp_thread *thread);

/* Leaves a call in progress for a while, and takes it up again, where other code runs between its
 * parts: an awaited call. False: it cannot be taken up, nor ended, and is given back. */
void qp_call_pause(qp_call *call);
bool qp_call_goes_on(qp_call *call);

/* Recording ends: what SQLite reports of the calls in progress is no more counted. */
void qp_calls_clear(void);

/* In a forked child: the running thread's calls in progress have no execution from here on. */
void qp_calls_after_fork(void);

#endif
