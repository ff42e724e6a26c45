/* Which words of a SQL text are columns of its tables, as SQLite has them in its schema.
 *
 * SQLite alone can tell whether a word in double quotes is a name or a string. It is asked after it
 * has taken the text: then it has the schema in memory, and opens and locks nothing for the answer
 * (https://www.sqlite.org/c3ref/table_column_metadata.html). Columns of views are not among them.
 */
#ifndef QP_COLUMN_NAMES_H
#define QP_COLUMN_NAMES_H

#include <Python.h>
#include <stdbool.h>

#include "sql_words.h"

/* Learns those of a text's words that are columns, as far as SQLite can be asked.
 * `connection` is a sqlite3.Connection (borrowed) whose sqlite3 was `db` when the call on it began.
 * With the GIL; never waits. */
void qp_columns_learn(PyObject *connection, const void *db, const qp_sql_words *words);

#endif
