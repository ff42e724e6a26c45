#include "origin.h"

#include "assertion.h"
#include "callpath.h"
#include "frames.h"
#include "notes.h"
#include "spans.h"
#include "threads.h"

void qp_origin_here(qp_thread *thread, qp_origin *origin)
{
    origin->recording = qp_recording;
    qp_callpath_find(thread->tstate, &origin->path);
    origin->span = qp_span_value();
    origin->note = qp_note_running();
    origin->calls = 0;
}

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
