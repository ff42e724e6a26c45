/* The rows about the calls' work on database files. */
#pragma once

#include "memory/tables.h"

/* File operations in the calls of a driver. lock_ticks is the time that calls waited for locks.
 * Writing includes creating, truncating and deleting. */
#define QP_FILE_SUMS(SUM) \
    SUM(lock_ticks)       \
    SUM(sync_ticks) SUM(read_ticks) SUM(write_ticks) SUM(syncs) SUM(read_bytes) SUM(written_bytes)

typedef struct {
    QP_FILE_SUMS(QP_DECLARE_SUM)
} qp_file_sums;

static inline void qp_file_sums_merge(qp_file_sums *to, const qp_file_sums *more)
{
    QP_FILE_SUMS(QP_ADD_SUM)
}

/* The file work of the calls with one key; keys without file work have no row. */
typedef struct {
    uint32_t mark;
    qp_key key;
    int64_t calls;
    int64_t lock_waits; /* number of calls that waited for a lock */
    int64_t max_lock_ticks;
    int64_t max_lock_before_ticks; /* the longest wait before the mark (changes.h) */
    qp_file_sums sums;
} qp_file_work_row;

typedef enum { QP_WRITE_LOCK, QP_READ_LOCK, QP_LOCK_WAIT, QP_LOCK_KINDS } qp_lock_kind;

/* Locks on a database: their kind, the calls that took them, and the calls that released them. */
typedef struct {
    uint32_t kind; /* qp_lock_kind */
    qp_text database;
    qp_key key;
    uint32_t end_statement;
    uint32_t end_path;
} qp_lock; /* without padding */

typedef struct {
    int64_t count;
    int64_t ticks;
    int64_t max_ticks;
    int64_t database_ticks;    /* time that the thread spent in driver calls while it held the
                                * locks */
    int64_t database_of_ticks; /* the part of `ticks` for which database_ticks is known */
    int64_t changed_rows;      /* rows changed by the thread's statements while it held the locks */
    int64_t log_bytes;         /* largest size of the write-ahead log; 0: unknown */
} qp_lock_sums;

static inline void qp_lock_sums_merge(qp_lock_sums *to, const qp_lock_sums *more)
{
    to->count += more->count;
    to->ticks += more->ticks;
    to->max_ticks = more->max_ticks > to->max_ticks ? more->max_ticks : to->max_ticks;
    to->database_ticks += more->database_ticks;
    to->database_of_ticks += more->database_of_ticks;
    to->changed_rows += more->changed_rows;
    to->log_bytes = more->log_bytes > to->log_bytes ? more->log_bytes : to->log_bytes;
}

/* Held locks, added up. */
typedef struct {
    uint32_t mark;
    qp_lock lock;
    int64_t max_before_ticks; /* the longest hold before the mark (changes.h) */
    qp_lock_sums sums;
} qp_lock_row;

/* A write lock that is held now. The thread that holds the lock owns the row and writes it without
 * the GIL. */
typedef struct {
    const void *_Atomic file; /* identity of the open file that owns the row; NULL if the row is
                               * free */
    uint32_t recording;       /* recording in which the lock was taken; 0 if it is released */
    qp_key key;               /* key of the call that took the lock */
    uint64_t identity;        /* identity of the database's file: see database_paths.h */
    uint64_t start_ticks;
} qp_held_row;

/* The time in which a connection held a lock, or waited for a lock. */
typedef struct {
    uint32_t connection; /* number of its file in this process */
    bool writes;         /* the waiter has the write lock: it waits for readers */
    uint64_t start_ticks;
    uint64_t end_ticks;
} qp_lock_time;

/* A long hold of a lock, or a long wait for a lock. */
typedef struct {
    qp_lock lock;
    uint32_t connection; /* number of its file in this process */
    uint32_t writes;     /* the waiter has the write lock: it waits for readers */
    int64_t start_unix_ns;
    int64_t duration_ns;
} qp_lock_event_row;
