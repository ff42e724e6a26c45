/* The connections whose statements are counted: a bounded table of trackers. */
#ifndef QP_COUNTERS_CONNECTIONS_H
#define QP_COUNTERS_CONNECTIONS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "sqlite/library.h"
#include "statements/schemas.h"
#include "sums/aggregates.h"

enum {
    QP_COUNTERS = 5, /* that SQLite keeps for each statement */
    QP_TRACKER_SETS = 16,
    QP_TRACKER_WAYS = 4, /* sets x ways statements of one connection are known at once */
    QP_TRACKER_STATEMENTS = QP_TRACKER_SETS * QP_TRACKER_WAYS
};

/* A prepared statement, and its owner since its counters were last read. A statement that
 * is not transient is held by one of the driver's statement objects, which is watched: it is taken
 * out of here before it is gone. */
typedef struct {
    void *volatile statement; /* sqlite3_stmt *, SQLite's; NULL: free */
    bool transient;           /* not a statement object's: it may be gone at any time */
    bool is_over;             /* a transient one that has ended, and has been read ... */
    uint32_t runs;            /* ... after so many runs, as SQLite counts them */
    void *volatile held; /* the same as `statement` where a statement object holds it, else NULL;
                          * written last, for it is read without the mutex, with the GIL */
    qp_key key;
    uint32_t base[QP_COUNTERS]; /* at the last reading; SQLite's counters wrap around as these do */
    uint32_t executions;        /* begun since then */
    uint32_t page_fetches;      /* of sampled executions since then */
    uint32_t page_fetch_samples;
} qp_counted_statement;

/* A connection's. Used only with its mutex held: inside SQLite's calls on it, or by settling. */
typedef struct {
    const qp_sqlite_functions *sqlite;
    void *db;                      /* sqlite3 *, SQLite's; NULL: free */
    char *path;                    /* owned: of its main database, as it was opened; NULL: none */
    bool traces_ends;              /* of the end of every statement: none is kept past it */
    uint32_t epoch;                /* what it holds is of this time of counting */
    _Atomic uint32_t tellers;      /* calls in progress that need the ends of statements; changed
                                    * with the GIL, read also with the mutex alone */
    qp_counted_statement *last;    /* the one that started last, if it is known longer; or NULL */
    qp_counted_statement *sampled; /* its page fetches are being counted; or NULL */
    uint32_t pages_at_start;
    const void *unproved; /* identity of a statement whose page fetches are being counted before it
                           * is known whose it is */
    uint32_t evictions;
    bool reprepared;  /* a statement was prepared again: the schema has changed */
    qp_schema schema; /* with the GIL */
    qp_counted_statement statements[QP_TRACKER_STATEMENTS];
} qp_tracker;

/* Allocates the table, once; false without memory. */
bool qp_trackers_start(void);

/* The tracker of a connection, or NULL. What it holds may change at once. */
qp_tracker *qp_tracker_of(const void *db);

/* A tracker for a new connection, empty; NULL: there are too many. */
qp_tracker *qp_tracker_take(void *db, uint32_t epoch);

/* Gives a tracker back: its connection goes. */
void qp_tracker_release(qp_tracker *tracker);

/* Calls `visit` for each tracker in use; `visit` must not wait. The tracker's connection may be
 * gone: the end of one whose trace was displaced is never told. */
void qp_trackers_visit(void (*visit)(qp_tracker *tracker));

/* The place of a statement among those of its tracker, or NULL. */
qp_counted_statement *qp_tracker_find(qp_tracker *tracker, const void *statement);

/* A place for a statement that is not known, with this key; what makes room is read first. */
qp_counted_statement *qp_tracker_place(qp_tracker *t, void *statement, const qp_key *key,
                                       bool transient);

/* Forgets a statement. */
static inline void qp_tracker_drop(qp_counted_statement *s)
{
    s->held = NULL;
    s->statement = NULL;
}

/* Whether the statement that starts at the address of one that has ended is the same: a new one
 * has run less often. True: it runs again. */
static inline bool qp_tracker_runs_again(const qp_tracker *t, qp_counted_statement *s)
{
    if (!s->is_over ||
        (uint32_t)t->sqlite->stmt_status(s->statement, QP_STMTSTATUS_RUN, 0) != s->runs) {
        return false;
    }
    s->is_over = false;
    return true;
}

/* Ends a transient statement, which has been read: it is known longer, if its tracker is told of
 * all ends. */
void qp_tracker_end(qp_tracker *t, qp_counted_statement *s);

/* What a statement of the tracker did since the last reading; from here it counts from zero. */
qp_counters qp_tracker_read(qp_tracker *t, qp_counted_statement *s);

/* The same where there is no GIL: the counters wait for the next probed call. */
void qp_tracker_read_aside(qp_tracker *t, qp_counted_statement *s);

/* The counters that a statement (sqlite3_stmt *) has now. */
void qp_tracker_read_base(const qp_tracker *t, void *statement, uint32_t base[QP_COUNTERS]);

/* Pages that the connection has fetched so far; wraps around. */
uint32_t qp_tracker_page_fetches(const qp_tracker *t);

/* Ends the counting of page fetches. While the statement has rows to give, others' fetches would
 * be taken for its own; `over` says that this run of it has ended. */
void qp_tracker_end_sample(qp_tracker *t, bool over);

/* Makes a new lock in a forked child. */
void qp_trackers_after_fork(void);

#endif
