/* The kind of a statement, by the words of its normal form: computed once, when it gets its number.
 * */
#pragma once

#include <stddef.h>

#include "memory/tables.h"

/* Its effect on the schema of a database. */
typedef enum {
    QP_SCHEMA_KEPT,      /* the statement changes no schema */
    QP_SCHEMA_CHANGED,   /* the database's schema */
    QP_SCHEMA_ENSURED,   /* the same, but only the first time: IF NOT EXISTS */
    QP_SCHEMA_ASIDE,     /* only the connection's (TEMP) schema */
    QP_SCHEMA_UNKNOWN,   /* changed in a way that the statement does not show */
    QP_SCHEMA_ELSEWHERE, /* the same, and of any connection */
    QP_SCHEMA_COMMITTED,
    QP_SCHEMA_ROLLED_BACK
} qp_schema_change;

/* A row without a text, with the kind of a statement of this normal form:
 *
 * `changes_rows`: it changes rows and returns none. `changes_uncounted`: it changes rows that the
 * standard library's driver does not count, because it begins with WITH. `can_be_explained`:
 * EXPLAIN QUERY PLAN accepts it. `schema_change`: how it changes the schema. `script_change`: the
 * same for a script of several statements.
 */
qp_statement_row qp_statement_kinds(const char *form, size_t length);
