#include "submission.h"

#include "callpath.h"
#include "notes.h"
#include "spans.h"

void qp_origin_here(qp_thread *thread, qp_origin *origin)
{
    origin->recording = qp_recording;
    qp_callpath_find(thread->tstate, &origin->path);
    origin->span = qp_span_value();
    origin->note = qp_note_running();
    origin->calls = 0;
}
