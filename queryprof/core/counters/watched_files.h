/* Files that SQLite has opened, watched: their tables of functions are exchanged for copies with
 * ours in front of SQLite's (https://www.sqlite.org/c3ref/io_methods.html), one copy for each of
 * its few tables, with the original behind it. Copies are never freed: files that are open when
 * recording ends keep them, and they only forward then.
 */
#pragma once

#include "counters/statement_events.h"
#include "runtime/thread_local.h"
#include "threads/threads.h"

/* Watches an open file (sqlite3_file *; may be NULL) that is not in use yet, or whose connection's
 * mutex is held. */
void qp_file_watch(void *file);

/* The call in progress in this thread, or NULL. */
static inline qp_active *qp_file_call_here(void)
{
    const qp_thread *thread = qp_here.thread;
    return thread && !qp_here.muted ? thread->active : NULL;
}

/* Its work, of which there is some from now on. */
static inline qp_file_work *qp_file_work_here(void)
{
    qp_active *call = qp_file_call_here();
    if (!call) {
        return NULL;
    }
    call->work.any = true;
    return &call->work;
}
