/* The kind of a statement. It is determined once, from the words of the normal form, when the
 * statement gets its number. */
#pragma once

#include <stddef.h>

#include "memory/tables.h"

/* A statement's effect on the schema of a database. */
typedef enum {
    QP_SCHEMA_KEPT,    /* the statement changes no schema */
    QP_SCHEMA_CHANGED, /* changes the database's schema */
    QP_SCHEMA_ENSURED, /* changes the database's schema, but only the first time (IF NOT EXISTS) */
    QP_SCHEMA_ASIDE,   /* changes only the connection's schema (TEMP) */
    QP_SCHEMA_UNKNOWN, /* may change the database's schema, in a way that the statement does not
                        * show */
    QP_SCHEMA_ELSEWHERE, /* may change the schema that any connection sees */
    QP_SCHEMA_COMMITTED,
    QP_SCHEMA_ROLLED_BACK
} qp_schema_change;

/* Returns a row without a text, for a statement with this normal form:
 *
 * `changes_rows`: the statement changes rows and returns none. `changes_uncounted`: the statement
 * changes rows that the standard library's driver does not count, because the statement begins with
 * WITH. `can_be_explained`: EXPLAIN QUERY PLAN accepts the statement. `schema_change`: the effect
 * on the schema. `script_change`: the effect if the text is a script of several statements.
 */
qp_statement_row qp_statement_classify(const char *form, size_t length);
