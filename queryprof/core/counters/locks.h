/* The locks that connections hold on database files, by file: taken for which statement, and how
 * long. SQLite's functions for locks report here, without the GIL, each file in one thread at a
 * time (https://www.sqlite.org/lockingv3.html, https://www.sqlite.org/walformat.html).
 */
#pragma once

#include "counters/statement_events.h"

/* A main database's file is opened (sqlite3_file *, identity only; `path` is copied), closed. */
void qp_locks_opened(const void *file, const char *path);
void qp_locks_closed(const void *file);

/* The number of a file's path, for qp_locks_path; 0: unknown. */
uint32_t qp_locks_path_number(const void *file);

/* A path by its number (never freed); "" for 0. */
const char *qp_locks_path(uint32_t number);

/* A lock of a write-ahead log is attempted: this file has one; whether it has. */
void qp_locks_in_wal(const void *file);
bool qp_locks_has_wal(const void *file);

/* A file's lock is taken for the call in progress in this thread (NULL: for none), or released. */
void qp_lock_taken(const void *file, qp_lock_kind kind, const qp_active *call);
void qp_lock_released(const void *file, qp_lock_kind kind, qp_active *call);

/* In a forked child: its parent's locks are not its own. */
void qp_locks_after_fork(void);
