/* The connections whose statements are counted: a bounded table of connections. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/execution_row.h"
#include "sqlite/library.h"
#include "statements/schemas.h"
#include "sums/aggregates.h"

enum {
    QP_COUNTERS = 5, /* counters that SQLite keeps for each statement */
    QP_CONNECTION_SETS = 16,
    QP_CONNECTION_WAYS = 4,
    QP_CONNECTION_BLOCKS =
        64, /* blocks x sets x ways: the most statements kept for one connection */
    QP_BLOCK_STATEMENTS = QP_CONNECTION_SETS * QP_CONNECTION_WAYS
};

/* A prepared statement, and the key to which its counters belong since they were last read. A
 * statement that is not transient is owned by one of the driver's statement objects. These objects
 * are watched, so the statement is removed from here before it is finalized. */
typedef struct {
    void *volatile statement; /* sqlite3_stmt *, owned by SQLite; NULL if free */
    bool is_whole;            /* the program's text ends with this statement */
    bool transient;           /* no statement object holds it: it may be finalized at any time */
    bool is_over;  /* a transient statement that has ended, and whose counters were read */
    uint32_t runs; /* for a transient statement: SQLite's count of its runs when it was last read */
    void *volatile held; /* equal to `statement` if a statement object owns the statement, else
                          * NULL; written last, because threads with the GIL read it without the
                          * mutex */
    qp_key key;
    uint32_t base[QP_COUNTERS]; /* counters at the last reading; wrap around as in SQLite */
    uint32_t executions;        /* executions begun since the last reading */
    uint32_t page_fetches;      /* page fetches of sampled executions since the last reading */
    uint32_t page_fetch_samples;
} qp_counted_statement;

/* Statements of a connection, by the hash of their address. If a set is full, there is a further
 * block. Blocks are never freed, because `held` may be read with the GIL and without the mutex. */
typedef struct qp_statement_block {
    qp_counted_statement statements[QP_BLOCK_STATEMENTS];
    struct qp_statement_block *more; /* or NULL */
} qp_statement_block;

/* A connection whose statements are traced. Use the record only with the connection's mutex held:
 * inside SQLite's calls on the connection, or when counters are flushed. */
typedef struct {
    const qp_sqlite_functions *sqlite;
    void *db;      /* sqlite3 *, owned by SQLite; NULL if free */
    uint32_t next; /* 1 + the number of the next record in its chain or in the free list; 0: none */
    uint64_t serial;  /* 1, 2, 3, ... in the order in which records were taken */
    char *path;       /* owned: the file of its main database, as opened; NULL if none */
    bool traces_ends; /* SQLite reports each statement's end, after which the statement is not
                       * kept unless it runs again */
    uint32_t epoch;   /* value of qp_counting.epoch for which the content is valid */
    /* Number of calls in progress that need the ends of statements. Change it with the GIL; read it
     * with the GIL or the mutex. */
    _Atomic uint32_t watchers;
    qp_counted_statement *last;    /* the statement that started last, if it is kept; or NULL */
    qp_counted_statement *sampled; /* the statement whose page fetches are being counted; or NULL */
    bool is_further_row; /* the page fetches belong to a further row of an execution that is already
                          * counted as a sample */
    uint32_t pages_at_start;
    const void *unproved; /* identity of a statement whose page fetches are being counted before its
                           * owner is known */
    uint32_t evictions;
    bool reprepared;  /* a statement was re-prepared: the schema has changed */
    qp_schema schema; /* protected by the GIL */
    qp_statement_block first;
} qp_traced_connection;

/* Allocates the table, once. Returns false if out of memory. */
bool qp_traced_connections_start(void);

/* Returns the record of a connection (sqlite3 *), or NULL. Other threads may change the record at
 * any time. */
qp_traced_connection *qp_traced_connection_of(const void *db);

/* Returns an empty record for a new connection; NULL if the table is full. */
qp_traced_connection *qp_traced_connection_new(void *db, uint32_t epoch);

/* Releases the record of a connection that closes. */
void qp_traced_connection_release(qp_traced_connection *traced);

/* Calls `visit` for each statement of a record. */
void qp_traced_for_each_statement(qp_traced_connection *traced,
                                  void (*visit)(qp_traced_connection *, qp_counted_statement *));

/* Returns any statement of a record that a statement object owns, or NULL. The caller must hold the
 * GIL; it need not hold the mutex. */
void *qp_traced_owned_statement(const qp_traced_connection *traced);

/* Forgets all statements of a record. */
void qp_traced_forget_statements(qp_traced_connection *traced);

/* Returns a copy of a path (owned by the caller: qp_free); NULL if there is no path or no
 * memory. */
char *qp_copy_path(const char *path);

/* Returns a copy of a connection's path (owned by the caller: qp_free), by the connection's
 * serial number, even after the connection was closed. `is_known` is set to false if the
 * connection's record was reused. */
char *qp_traced_path(uint64_t serial, bool *is_known);

/* Calls `visit` for each record in use; `visit` must not wait. The connection may be closed: SQLite
 * does not report the closing of a connection whose trace callback was replaced. */
void qp_traced_connections_visit(void (*visit)(qp_traced_connection *traced));

/* Returns the slot of a statement in its connection's record, or NULL. */
qp_counted_statement *qp_traced_find_statement(qp_traced_connection *traced, const void *statement);

/* Returns a slot for a new statement with this key. If the slot held another statement, its
 * counters are read first, unless that statement is transient. */
qp_counted_statement *qp_traced_reserve_statement(qp_traced_connection *t, void *statement,
                                                  const qp_key *key, bool transient);

/* Returns whether a connection is in a transaction. The connection must be open. A connection is
 * open during SQLite's calls on it. While the GIL is held, it is also open if the driver clears its
 * reference before closing. */
static inline qp_transaction qp_traced_transaction(const qp_traced_connection *t)
{
    return t->sqlite->get_autocommit(t->db) ? QP_NO_TRANSACTION : QP_IN_TRANSACTION;
}

/* Clears the slot of a statement. */
static inline void qp_traced_clear_slot(qp_counted_statement *s)
{
    s->held = NULL;
    s->statement = NULL;
}

/* Returns whether an ended statement runs again: the statement at its address has the same number
 * of runs. If so, clears `is_over`. */
static inline bool qp_traced_runs_again(const qp_traced_connection *t, qp_counted_statement *s)
{
    if (!s->is_over ||
        (uint32_t)t->sqlite->stmt_status(s->statement, QP_STMTSTATUS_RUN, 0) != s->runs) {
        return false;
    }
    s->is_over = false;
    return true;
}

/* Ends a transient statement whose counters were read. The statement is kept if SQLite reports all
 * ends on its connection, because it may run again. */
void qp_traced_end_statement(qp_traced_connection *t, qp_counted_statement *s);

/* Returns a statement's counters since the last reading, and counts from zero again. */
qp_counters qp_traced_take_counters(qp_traced_connection *t, qp_counted_statement *s);

/* Reads a statement's counters without the GIL, and keeps the counters for the next probed call. */
void qp_traced_keep_counters(qp_traced_connection *t, qp_counted_statement *s);

/* Reads the present counters of a statement (sqlite3_stmt *). */
void qp_traced_present_counters(const qp_traced_connection *t, void *statement,
                                uint32_t base[QP_COUNTERS]);

/* Returns the number of pages that the connection has fetched; wraps around. */
uint32_t qp_traced_page_fetches(const qp_traced_connection *t);

/* Stops counting page fetches for the sampled statement. The fetches are dropped if the statement
 * has more rows, because fetches of other statements may be among them. `over` means that the
 * statement's run has ended. */
void qp_traced_end_page_count(qp_traced_connection *t, bool over);

/* Makes a new lock in a forked child. */
void qp_traced_connections_after_fork(void);
