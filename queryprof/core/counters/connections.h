/* The connections whose statements are counted: a bounded table of connections. */
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
    QP_CONNECTION_SETS = 16,
    QP_CONNECTION_WAYS = 4, /* sets x ways statements of one connection are known at once */
    QP_CONNECTION_STATEMENTS = QP_CONNECTION_SETS * QP_CONNECTION_WAYS
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
    qp_counted_statement statements[QP_CONNECTION_STATEMENTS];
} qp_traced_connection;

/* Allocates the table, once; false without memory. */
bool qp_traced_connections_start(void);

/* The traced of a connection, or NULL. What it holds may change at once. */
qp_traced_connection *qp_traced_of(const void *db);

/* A traced for a new connection, empty; NULL: there are too many. */
qp_traced_connection *qp_traced_take(void *db, uint32_t epoch);

/* Gives a traced back: its connection goes. */
void qp_traced_release(qp_traced_connection *traced);

/* Calls `visit` for each traced in use; `visit` must not wait. The traced's connection may be
 * gone: the end of one whose trace was displaced is never told. */
void qp_traced_connections_visit(void (*visit)(qp_traced_connection *traced));

/* The place of a statement among those of its traced, or NULL. */
qp_counted_statement *qp_traced_find(qp_traced_connection *traced, const void *statement);

/* A place for a statement that is not known, with this key; what makes room is read first. */
qp_counted_statement *qp_traced_place(qp_traced_connection *t, void *statement, const qp_key *key,
                                      bool transient);

/* Forgets a statement. */
static inline void qp_traced_drop(qp_counted_statement *s)
{
    s->held = NULL;
    s->statement = NULL;
}

/* Whether the statement that starts at the address of one that has ended is the same: a new one
 * has run less often. True: it runs again. */
static inline bool qp_traced_runs_again(const qp_traced_connection *t, qp_counted_statement *s)
{
    if (!s->is_over ||
        (uint32_t)t->sqlite->stmt_status(s->statement, QP_STMTSTATUS_RUN, 0) != s->runs) {
        return false;
    }
    s->is_over = false;
    return true;
}

/* Ends a transient statement, which has been read: it is known longer, if its traced is told of
 * all ends. */
void qp_traced_end(qp_traced_connection *t, qp_counted_statement *s);

/* What a statement of the traced did since the last reading; from here it counts from zero. */
qp_counters qp_traced_read(qp_traced_connection *t, qp_counted_statement *s);

/* The same where there is no GIL: the counters wait for the next probed call. */
void qp_traced_read_aside(qp_traced_connection *t, qp_counted_statement *s);

/* The counters that a statement (sqlite3_stmt *) has now. */
void qp_traced_read_base(const qp_traced_connection *t, void *statement,
                         uint32_t base[QP_COUNTERS]);

/* Pages that the connection has fetched so far; wraps around. */
uint32_t qp_traced_page_fetches(const qp_traced_connection *t);

/* Ends the counting of page fetches. While the statement has rows to give, others' fetches would
 * be taken for its own; `over` says that this run of it has ended. */
void qp_traced_end_sample(qp_traced_connection *t, bool over);

/* Makes a new lock in a forked child. */
void qp_traced_connections_after_fork(void);

#endif
