/* What work that runs elsewhere takes along from where it is handed over. */
#ifndef QP_CONTEXT_SUBMISSION_H
#define QP_CONTEXT_SUBMISSION_H

#include "stacks/submitter.h"
#include "threads/threads.h"

/* Notes where the running thread is; the note becomes a new reference. Never raises. */
void qp_submitter_here(qp_thread *thread, qp_submitter *submitter);

#endif
