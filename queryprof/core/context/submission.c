#include "context/submission.h"

#include "context/spans.h"
#include "context/statement_labels.h"
#include "lines/line_choice.h"
#include "stacks/call_paths.h"

void qp_submitter_capture(qp_thread *thread, qp_submitter *submitter)
{
    submitter->recording = qp_recording;
    qp_call_path_find(thread->tstate, &submitter->path);
    qp_call_path_note_for_task(thread->tstate, submitter->path);
    submitter->stack = qp_stack_find_for_submitter(thread->tstate, submitter->path);
    submitter->span = qp_running_span();
    submitter->note = qp_running_label();
    submitter->calls = 0;
    submitter->pass = qp_line_consider_submission(thread, submitter->path);
}
