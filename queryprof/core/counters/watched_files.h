/* Watches files that SQLite has opened: their tables of functions are replaced by copies that run
 * our functions before SQLite's (https://www.sqlite.org/c3ref/io_methods.html).
 *
 * Only tables of SQLite's own VFS are replaced. A journal in memory keeps its table, because SQLite
 * recognizes such a journal by its table. Another tool's table is not replaced. There is one copy
 * for each of SQLite's few tables. A copy is never changed or freed. Files that are open when
 * recording ends keep the copy, which then only forwards.
 */
#pragma once

#include "counters/statement_events.h"
#include "runtime/thread_local.h"
#include "threads/threads.h"

enum {
    QP_WATCHED_LIBRARIES =
        4 /* SQLite libraries per process; the files of further libraries are unknown */
};

/* Notes one of SQLite's own tables of functions (sqlite3_io_methods). Returns false if the table
 * cannot be watched. The caller must hold the GIL. */
bool qp_file_table_add(const void *table);

/* Watches an open file (sqlite3_file *; may be NULL) that is not in use yet, or whose connection's
 * mutex is held. Returns whether the file is watched; false if its table is unknown. */
bool qp_file_watch(void *file);

/* Returns whether an open file has a table of functions. A file without a table is in memory. */
bool qp_file_has_table(const void *file);

/* Returns the call in progress in this thread, or NULL. */
static inline qp_active_call *qp_running_call_here(void)
{
    const qp_thread *thread = qp_here.thread;
    return thread && !qp_here.muted ? thread->active : NULL;
}

/* Returns the file work of the call in progress in this thread, and marks the work as used. NULL if
 * there is no call. */
static inline qp_file_work *qp_running_call_file_work(void)
{
    qp_active_call *call = qp_running_call_here();
    if (!call) {
        return NULL;
    }
    call->work.any = true;
    return &call->work;
}
