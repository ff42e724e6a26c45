/* The waits of a driver's call for locks on files. The watched lock functions of SQLite's files
 * report each attempt and each refusal here, without the GIL. */
#pragma once

#include "counters/statement_events.h"

/* Notes that a call tries to take a refused lock again, or another lock of the same file. */
void qp_lock_retried(const void *file, qp_active_call *call);

/* Notes that the call in progress in this thread (NULL if none) tries to take a lock of a file
 * (identity only). */
static inline void qp_lock_attempted(const void *file, qp_active_call *call)
{
    if (call && call->work.refused_file == file) {
        qp_lock_retried(file, call);
    }
}

/* Notes that a lock was refused. `lock` is the number of the file's lock. */
void qp_lock_refused(const void *file, int lock, qp_active_call *call);

/* Notes that a lock was granted, so that a wait for the lock is over. */
static inline void qp_lock_granted(const void *file, int lock, qp_active_call *call)
{
    if (call && call->work.waited_file == file && call->work.waited_lock == lock) {
        call->work.waited_file = NULL;
    }
}

/* Notes that a write lock was refused to a transaction that an earlier call began by reading.
 * SQLite calls no busy handler then, because two such transactions would wait for each other
 * forever. */
void qp_lock_upgrade_refused(const void *file, qp_active_call *call);
