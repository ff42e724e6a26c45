/* The work of a driver's call on files and locks: SQLite's requests to the operating system during
 * the call. The call contains this work. Only the call's thread writes the work, mostly without the
 * GIL. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/file_rows.h"

enum { QP_CALL_HOLDS = 8, QP_CALL_WAITS = 4 };

/* Locks of one kind on one database that this call released and that were taken for one key: the
 * sums of the locks, and the start and end of the longest lock. */
typedef struct {
    qp_lock_kind kind;
    uint32_t path; /* number of the database's path: see locks.h */
    bool is_own;   /* the call that releases the locks also took them, so their key is final only
                    * when the call ends */
    qp_key key;
    qp_lock_sums sums;
    qp_lock_time longest;
} qp_call_hold;

/* A wait of a call for one file's lock. */
typedef struct {
    uint32_t path; /* number of the database's path */
    qp_lock_time time;
} qp_call_wait;

struct qp_locked_file;

typedef struct {
    bool any;    /* false if the sums are zero */
    bool opened; /* the call opened a database file, which the VFS watches */
    qp_file_sums sums;
    struct qp_locked_file
        *taken;       /* the file whose lock was taken last, in this call or an earlier one */
    bool took_others; /* this call also took locks of other files */
    /* A lock that was refused and not attempted again since. */
    const void *refused_file; /* identity; NULL if nothing was refused */
    uint64_t refused_ticks;
    int64_t file_ticks_then;          /* file time when the lock was refused; later file time is
                                       * not waiting time */
    int waits;                        /* number of valid elements in `wait` */
    qp_call_wait wait[QP_CALL_WAITS]; /* the last wait, and the longest earlier ones */
    /* About the last wait: */
    const void *waited_file; /* identity of the file whose lock is not granted yet; NULL if it was
                              * granted */
    int waited_lock;         /* the number of that file's lock */
    bool would_write; /* the write lock was refused to a transaction that had begun to read, for
                       * which SQLite does not wait */
    bool failed;      /* the call raised an exception, because a lock was refused */
    int holds;
    qp_call_hold hold[QP_CALL_HOLDS]; /* the first `holds` elements are valid */
} qp_file_work;

static inline void qp_file_work_clear(qp_file_work *work)
{
    work->any = work->opened = work->failed = false;
    work->sums = (qp_file_sums){0};
    work->refused_file = work->waited_file = NULL;
    work->waits = 0;
    work->holds = 0;
    work->took_others = false;
}
