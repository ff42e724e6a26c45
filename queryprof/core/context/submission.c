#include "context/submission.h"

#include "context/spans.h"
#include "context/statement_labels.h"
#include "stacks/call_paths.h"

void qp_origin_here(qp_thread *thread, qp_origin *origin)
{
    origin->recording = qp_recording;
    qp_callpath_find(thread->tstate, &origin->path);
    origin->span = qp_span_value();
    origin->note = qp_note_running();
    origin->calls = 0;
}
