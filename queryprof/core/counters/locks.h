/* The locks that connections hold on database files: the statement that took each lock, and how
 * long it was held. The watched lock functions of SQLite's files report here, without the GIL. Only
 * one thread at a time reports about a file (https://www.sqlite.org/lockingv3.html,
 * https://www.sqlite.org/walformat.html). */
#pragma once

#include <stdatomic.h>

#include "counters/statement_events.h"
#include "runtime/index.h"
#include "threads/threads.h"

enum {
    QP_LOCKED_FILES = 1024,   /* maximum number of open files; the locks of further files are
                               * unknown */
    QP_LOCKED_FILES_NEAR = 16 /* number of slots in which a file may be */
};

typedef struct {
    bool is_held;
    qp_key key; /* key of the call that took the lock */
    uint32_t recording;
    const qp_thread *thread;   /* thread that took the lock; identity only */
    uint64_t call_start_ticks; /* start of the call that took the lock */
    uint64_t start_ticks;
    int64_t database_ticks; /* the thread's database time when it took the lock */
    int64_t changed_rows;   /* rows that the thread had changed when it took the lock */
    uint64_t counted_ticks; /* the sums contain the lock's time up to these ticks; 0 if they do not
                             * contain the lock */
    bool writes;            /* read lock: its transaction also took the write lock */
    bool blocks;            /* read lock: a writer of this process waits for readers */
    qp_held_row *row;       /* write lock: the row that readers see; NULL if there is no room */
} qp_held_lock;

typedef struct qp_locked_file {
    const void *_Atomic file; /* sqlite3_file *, identity only; NULL if free */
    uint32_t path;            /* number of the database's path */
    uint32_t number;          /* serial number among all files that this process opened */
    bool has_wal; /* the database has a write-ahead log, which has separate locks: the file's own
                   * lock is not a read transaction */
    bool is_checkpointing;      /* this connection writes the log back to the database */
    uint32_t log_recording;     /* the recording to which log_refusals belongs */
    uint32_t log_refusals;      /* how often readers kept this connection from restarting the
                                 * write-ahead log, since the log was last restarted or small */
    uint64_t log_kept_ticks;    /* the time of the first refusal */
    uint64_t log_checked_ticks; /* when the log's size was last read */
    int64_t kept_log_bytes;     /* size of a large log that readers keep; 0 if it is small */
    qp_held_lock held[QP_LOCK_WAIT];
} qp_locked_file;

extern qp_locked_file qp_locked_files[QP_LOCKED_FILES + QP_LOCKED_FILES_NEAR];

/* Adds or removes an open database file (identity only). `of_main`: see database_paths.h. */
void qp_locks_file_opened(const void *file, const char *path, bool of_main);
void qp_locks_file_closed(const void *file);

static inline qp_locked_file *qp_locks_first_slot(const void *file)
{
    return &qp_locked_files[((uint64_t)(uintptr_t)file * QP_GOLDEN_RATIO >> 40) % QP_LOCKED_FILES];
}

/* Returns the locks of an open file; NULL if the file is unknown. */
static inline qp_locked_file *qp_locks_of_file(const void *file)
{
    qp_locked_file *place = qp_locks_first_slot(file);
    for (int i = 0; i < QP_LOCKED_FILES_NEAR; i++) {
        if (atomic_load_explicit(&place[i].file, memory_order_relaxed) == file) {
            return &place[i];
        }
    }
    return NULL;
}

/* Notes that a lock was taken or released in this thread's call in progress (NULL if there is no
 * call). */
void qp_lock_taken(qp_locked_file *file, qp_lock_kind kind, qp_active_call *call);
void qp_lock_released(qp_locked_file *file, qp_lock_kind kind, qp_active_call *call);

/* Notes that a connection with the write lock of a database waits for readers. `path` is the number
 * of the database's path. */
void qp_locks_writer_waits(uint32_t path);

/* Notes that readers kept a connection from writing back its whole write-ahead log or from
 * restarting it, or that the connection restarted it. */
void qp_log_kept(qp_locked_file *file);
void qp_log_restarted(qp_locked_file *file);

/* Sets the key of the locks that a call took and that are still held. The locks have the call's
 * provisional key until then. */
void qp_locks_set_key(const qp_active_call *call, const qp_key *key);

/* Calls `add` for each lock that was released outside the driver's calls since the last time, and
 * for the new time of each lock that has been held for at least a second. `with_held`: also for
 * write locks that have been held for less than a second, and for read locks that block writers.
 * The caller must hold the GIL. */
void qp_locks_collect(void (*add)(const qp_call_hold *hold), bool with_held);

/* In a forked child: clears the parent's locks. */
void qp_locks_after_fork(void);
