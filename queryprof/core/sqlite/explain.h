/* EXPLAIN QUERY PLAN (https://www.sqlite.org/eqp.html), run on a connection inside the program's
 * call.
 *
 * The EXPLAIN runs when SQLite reports that the statement starts: SQLite has then read the schema
 * and holds the connection's mutex. The EXPLAIN does not run the statement itself. If the statement
 * writes, EXPLAIN sets changes() to 0, and queryprof restores the value. If that is impossible
 * (changes_value.h), the plan stays unknown.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sqlite/column_names.h"

/* The request for the statement that starts next. */
typedef struct qp_explanation {
    bool wants_plan;
    qp_column_question *columns; /* owned (qp_free); NULL if no columns are requested */
    char *tree;                  /* owned (qp_free); NULL: no plan yet, or SQLite returned no
                                  * steps */
    int64_t ticks;               /* duration of the request */
    void *statement;             /* sqlite3_stmt * that was explained */
    int reprepares;              /* how often that statement had been re-prepared when it was
                                  * explained */
} qp_explanation;

/* Requests the columns and the plan of a statement (sqlite3_stmt *) on its connection (sqlite3 *).
 * The plan has a line for each step, indented by two spaces more than the step to which it belongs.
 * The caller must hold the connection's mutex, but not the GIL. */
void qp_explain(qp_explanation *explanation, void *db, void *statement);
