#include "context/submission.h"

#include "context/spans.h"
#include "context/statement_labels.h"
#include "lines/line_choice.h"
#include "stacks/call_paths.h"

void qp_submitter_here(qp_thread *thread, qp_submitter *submitter)
{
    submitter->recording = qp_recording;
    qp_call_path_find(thread->tstate, &submitter->path);
    qp_call_path_note(thread->tstate, submitter->path);
    submitter->stack = qp_stack_find_submitter(thread->tstate, submitter->path);
    submitter->span = qp_span_value();
    submitter->note = qp_label_running();
    submitter->calls = 0;
    submitter->pass = qp_line_submits(thread, submitter->path);
}
