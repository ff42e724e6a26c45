/* Stores facts about the submitter of work that runs in another thread or greenlet. */
#pragma once

#include "stacks/submitter.h"
#include "threads/threads.h"

/* Stores the running thread's call path, complete stack, span and label in `submitter`, which then
 * owns a reference to the label. Never raises. */
void qp_submitter_capture(qp_thread *thread, qp_submitter *submitter);
