/* Finds the words of a SQL text that are columns of its tables, according to SQLite's schema.
 *
 * Only SQLite can decide whether a word in double quotes is a name or a string. queryprof calls
 * SQLite when a statement with the text starts. Then the schema is in memory, so that the call
 * opens and locks nothing (https://www.sqlite.org/c3ref/table_column_metadata.html). The GIL is not
 * held during this call, so that another thread that holds a shared cache's mutex can wait for the
 * GIL. Columns of views are not included.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "sql/words.h"

/* A question about one SQL text: which of these words are columns of these tables? The words point
 * into the text's UTF-8. */
typedef struct qp_column_question {
    qp_word tables[QP_WORDS_KEPT];
    qp_word words[QP_WORDS_KEPT];
    int table_count;
    int word_count;
    bool is_column[QP_WORDS_KEPT][QP_WORDS_KEPT]; /* the answer, by word and table */
} qp_column_question;

/* Returns a question about the columns in a text (borrowed: any object, which must live until the
 * answer). The caller owns the question (qp_free). NULL if the text has no word in quotes that
 * may enclose a value, or if out of memory. Never raises. The caller must hold the GIL. */
qp_column_question *qp_column_question_new(PyObject *sql);

/* Answers the question on a connection (sqlite3 *). The caller must hold the connection's mutex,
 * but not the GIL. */
void qp_column_question_answer(qp_column_question *question, void *db);

/* Stores the answer. The caller must hold the GIL. */
void qp_column_question_store(const qp_column_question *question);
