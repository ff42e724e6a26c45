#include "stacks/submitter.h"

#include "runtime/assertion.h"
#include "stacks/frames.h"

void qp_origin_enter(qp_origin *origin)
{
    origin->frame = qp_frame_cheap_identity(PyThreadState_Get());
    origin->below = qp_here.origin;
    qp_here.origin = origin;
}

void qp_origin_leave(qp_origin *origin)
{
    qp_origin **place = &qp_here.origin;
    while (*place && *place != origin) {
        place = &(*place)->below;
    }
    QP_ASSERT(*place == origin); /* it ends in the thread in which it began */
    if (*place) {
        *place = origin->below;
    }
}

qp_origin *qp_origin_running(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    qp_origin *origin = qp_here.origin;
    while (origin && origin->frame && !qp_frame_is_running(tstate, origin->frame)) {
        origin = origin->below;
    }
    return origin;
}
