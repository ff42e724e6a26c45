/* The work of a driver's call on files and locks: what SQLite asked of the operating system while
 * the call was in progress. It is part of the call, and its thread alone writes it, mostly without
 * the GIL.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/file_rows.h"

enum { QP_CALL_HOLDS = 8 };

/* Locks of one kind on one database that were taken for one key and released in this call: the
 * sums, and when the longest began and ended. */
typedef struct {
    qp_lock_kind kind;
    uint32_t path; /* of the database: see locks.h */
    bool is_own;   /* this call took them: its key is not final before its end */
    qp_key key;
    qp_lock_sums sums;
    uint64_t start_ticks;
    uint64_t end_ticks;
} qp_call_hold;

struct qp_locked_file;

typedef struct {
    bool any;    /* else there is none, and the sums are zero */
    bool opened; /* a database's file, which is watched */
    qp_file_sums sums;
    struct qp_locked_file
        *taken;       /* the file whose lock a call took last; it may be an earlier one */
    bool took_others; /* this call, before that */
    /* A lock that was refused and not attempted again since. */
    const void *refused_file; /* identity; NULL: there is none */
    uint64_t refused_ticks;
    int64_t file_ticks_then; /* reading, writing and syncing since is no waiting */
    /* All of the call's waits for locks, of one database. */
    uint32_t wait_path; /* 0: there are none, and the next three are not valid */
    bool writes;        /* a lock was refused to the connection that has the write lock */
    bool would_write; /* the write lock was refused to a transaction that had begun to read: SQLite
                       * does not wait for it */
    bool failed;      /* the call raised, as a lock was refused */
    uint64_t wait_start_ticks;
    uint64_t wait_end_ticks;
    int holds;
    qp_call_hold hold[QP_CALL_HOLDS]; /* the first `holds` */
} qp_file_work;

static inline void qp_file_work_clear(qp_file_work *work)
{
    work->any = work->opened = false;
    work->sums = (qp_file_sums){0};
    work->refused_file = NULL;
    work->wait_path = 0;
    work->holds = 0;
    work->took_others = false;
}
