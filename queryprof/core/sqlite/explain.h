/* EXPLAIN QUERY PLAN (https://www.sqlite.org/eqp.html), run on a connection inside the program's
 * call.
 *
 * It runs when SQLite reports that the statement starts: the schema is read and the connection's
 * mutex held. The statement itself is not run. EXPLAIN sets changes() to 0 where the statement
 * writes: that is restored, and where it cannot be (change_counter.h) the plan stays unknown.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sqlite/column_names.h"

/* The request for the statement that starts next. */
typedef struct qp_explanation {
    bool wants_plan;
    qp_column_question *columns; /* owned (qp_release); NULL if there is no question */
    char *tree;                  /* owned (qp_release); NULL: not there yet, or SQLite returned
                                  * none */
    int64_t ticks;               /* taken by the request */
    void *statement;             /* sqlite3_stmt * that was explained */
    int reprepares;              /* how often it had been re-prepared when it was explained */
} qp_explanation;

/* Requests a statement's (sqlite3_stmt *) columns and plan on its connection (sqlite3 *): a line
 * for each step, two spaces deeper than the step that it belongs to. With the connection's mutex,
 * without the GIL. */
void qp_explain(qp_explanation *explanation, void *db, void *statement);
