/* EXPLAIN QUERY PLAN (https://www.sqlite.org/eqp.html), asked of a connection inside its own call.
 *
 * It is asked when SQLite tells that the statement starts: the schema is read and the connection's
 * mutex held. Nothing of the statement is run. EXPLAIN sets changes() to 0 where the statement
 * writes: that is put back, and where that cannot be done (change_counter.h) the plan stays
 * unknown.
 */
#ifndef QP_SQLITE_EXPLAIN_H
#define QP_SQLITE_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "sqlite/column_names.h"

/* What is asked about the statement which starts next. */
typedef struct qp_explanation {
    bool wants_plan;
    qp_column_question *columns; /* owned (qp_release); NULL: no question */
    char *tree;                  /* owned (qp_release); NULL: not there yet, or SQLite gave none */
    int64_t ticks;               /* that it took */
    void *statement;             /* sqlite3_stmt * that was explained */
    int reprepares;              /* how often it had been prepared again when it was explained */
} qp_explanation;

/* Asks on a statement's (sqlite3_stmt *) connection (sqlite3 *) for its columns and its plan: a
 * line for each step, two spaces deeper than the step that it belongs to. With the connection's
 * mutex, without the GIL. */
void qp_explain(qp_explanation *explanation, void *db, void *statement);

#endif
