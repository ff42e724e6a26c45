/* Maps the SQL object that a program passes to its statement: the number of the text's normal form.
 *
 * There are two tables. One is a cache from SQL texts to statements, so that a text is scanned only
 * once. The other contains the statements, which are identified by their normal forms, numbered
 * from 0 and never removed. The region contains a normal form only after a database has accepted a
 * text with this normal form; before that, only the keywords of the text.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"
#include "sql/words.h"
#include "sqlite/column_names.h"

enum {
    QP_STATEMENT_OTHER = 0,  /* "(other)": all statements that were found after the table was
                              * full */
    QP_STATEMENT_UNKNOWN = 1 /* "(unknown)": for rows of a cursor whose execute the probe did not
                              * see */
};

/* Allocates the tables. Returns false if out of memory. */
bool qp_statements_start(void);

/* Frees the tables and the references to SQL texts. */
void qp_statements_stop(void);

/* Returns the statement of `sql` (borrowed, any object). The statement of an object that is not a
 * str is QP_STATEMENT_UNKNOWN. Never raises. */
uint32_t qp_statement_of_object(PyObject *sql);

/* Returns the statement of an object that a driver in Python accepts as a query: a str, UTF-8
 * bytes, or an object that converts to text (psycopg's Composable has `as_string`). Never
 * raises. */
uint32_t qp_statement_of_query(PyObject *query, PyObject *receiver, qp_dialect dialect,
                               qp_system system);

/* Returns the statement with this normal form, for operations that have no SQL text. */
uint32_t qp_statement_of_name(const char *name);

/* Returns the statement of a text that SQLite has accepted, after the text's first execution.
 * `number` is the text's statement so far. `columns` lists the hidden words in quotes that are
 * columns; NULL if unknown, or if no word is hidden. Never raises. */
uint32_t qp_statement_of_accepted(uint32_t number, PyObject *sql,
                                  const qp_column_question *columns);

/* Returns the statement of a text that the database has refused. The statement depends only on the
 * text and the error, so that it is the same in every run. */
uint32_t qp_statement_of_refused(uint32_t number, PyObject *sql, qp_dialect dialect,
                                 qp_text_kind kind);

bool qp_statement_is_known(uint32_t statement);

/* Returns the row of a statement, which is valid as long as recording is on. */
const qp_statement_row *qp_statement_get_row(uint32_t statement);

/* The number of normal forms that no database has accepted yet, and that are not in the region. */
extern uint32_t qp_statements_held;

/* Returns whether a text has several statements, or a name with a semicolon. */
bool qp_statement_is_script(uint32_t statement);

bool qp_statement_form_is_unaccepted(uint32_t statement);

/* Returns whether no database has accepted a text of this statement yet. */
static inline bool qp_statement_is_not_yet_accepted(uint32_t statement)
{
    return qp_statements_held && qp_statement_form_is_unaccepted(statement);
}
