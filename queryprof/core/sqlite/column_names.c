#include "sqlite/column_names.h"

#include <string.h>

#include "runtime/allocation.h"
#include "runtime/exception.h"
#include "sql/normal_form.h"
#include "sqlite/library.h"

enum { MAX_NAME = 256 };

/* Copies a word as a C string, with doubled quotes as one. Returns false if the word is too
 * long. */
static bool copy_name(char to[MAX_NAME], const qp_word *word)
{
    size_t length = 0;
    for (size_t i = 0; i < word->length; i++) {
        char c = word->text[i];
        if (length == MAX_NAME - 1) {
            return false;
        }
        to[length++] = c;
        i += (c == '"' || c == '`') && i + 1 < word->length && word->text[i + 1] == c;
    }
    to[length] = 0;
    return true;
}

/* Returns a text's UTF-8, or NULL if it is not a str or cannot be encoded; raises nothing. */
static const char *utf8_of(PyObject *sql, Py_ssize_t *length)
{
    if (!sql || !PyUnicode_Check(sql)) {
        return NULL;
    }
    qp_exception exception = qp_exception_take();
    const char *bytes = PyUnicode_AsUTF8AndSize(sql, length);
    qp_exception_put_back(&exception); /* also drops an error from above */
    return bytes;
}

qp_column_question *qp_column_question_new(PyObject *sql)
{
    Py_ssize_t length;
    const char *bytes = utf8_of(sql, &length);
    const qp_sql_words *words = bytes ? qp_normal_form_words(bytes, (size_t)length) : NULL;
    qp_column_question *question = words ? qp_allocate(1, sizeof *question) : NULL;
    if (!question) {
        return NULL;
    }
    question->table_count = words->table_count;
    memcpy(question->tables, words->tables, sizeof question->tables);
    for (int i = 0; i < words->hidden_count; i++) {
        const qp_word *word = &words->hidden[i];
        if (!qp_column_is_known(words, qp_word_hash(word->text, word->length))) {
            question->words[question->word_count++] = *word;
        }
    }
    return question;
}

void qp_column_question_answer(qp_column_question *question, void *db)
{
    char table[MAX_NAME], column[MAX_NAME];
    for (int i = 0; qp_sqlite.table_column_metadata && i < question->word_count; i++) {
        for (int j = 0; j < question->table_count; j++) {
            question->is_column[i][j] =
                copy_name(table, &question->tables[j]) && copy_name(column, &question->words[i]) &&
                qp_sqlite.table_column_metadata(db, NULL, table, column, NULL, NULL, NULL, NULL,
                                                NULL) == 0;
        }
    }
}

void qp_column_question_store(const qp_column_question *question)
{
    for (int i = 0; i < question->word_count; i++) {
        for (int j = 0; j < question->table_count; j++) {
            if (question->is_column[i][j]) {
                qp_known_columns_add(&question->tables[j], &question->words[i]);
            }
        }
    }
}
