#include "stacks/submitter.h"

#include "runtime/assertion.h"
#include "stacks/frames.h"

void qp_submitter_begin_work(qp_submitter *submitter)
{
    submitter->frame = qp_frame_cheap_identity(PyThreadState_Get());
    submitter->below = qp_here.submitter;
    qp_here.submitter = submitter;
}

void qp_submitter_end_work(qp_submitter *submitter)
{
    qp_submitter **place = &qp_here.submitter;
    while (*place && *place != submitter) {
        place = &(*place)->below;
    }
    QP_ASSERT(*place == submitter); /* work ends in the thread in which it began */
    if (*place) {
        *place = submitter->below;
    }
}

qp_submitter *qp_running_submitter_find(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    qp_submitter *submitter = qp_here.submitter;
    while (submitter && submitter->frame && !qp_frame_is_running(tstate, submitter->frame)) {
        submitter = submitter->below;
    }
    return submitter;
}
