#include "column_names.h"

#include <string.h>

#include "sqlite_library.h"

enum { LONGEST_NAME = 256 };

/* A word as a C string, without the second of two quotes; false: it is too long. */
static bool copy_name(char to[LONGEST_NAME], const qp_word *word)
{
    size_t length = 0;
    for (size_t i = 0; i < word->length; i++) {
        char c = word->text[i];
        if (length == LONGEST_NAME - 1) {
            return false;
        }
        to[length++] = c;
        i += (c == '"' || c == '`') && i + 1 < word->length && word->text[i + 1] == c;
    }
    to[length] = 0;
    return true;
}

static void learn(void *db, const qp_word *table, const qp_word *column)
{
    char table_name[LONGEST_NAME], column_name[LONGEST_NAME];
    bool is_column = copy_name(table_name, table) && copy_name(column_name, column) &&
                     qp_sqlite.table_column_metadata(db, NULL, table_name, column_name, NULL, NULL,
                                                     NULL, NULL, NULL) == 0;
    if (is_column) {
        qp_column_learn(table, column);
    }
}

void qp_columns_learn(PyObject *connection, const void *db, const qp_sql_words *words)
{
    /* The driver takes db off the connection, with the GIL, before it closes it; so it is open. */
    void *open = qp_connection_db(connection);
    if (!open || open != db || !qp_sqlite.table_column_metadata) {
        return;
    }
    void *mutex = qp_sqlite.db_mutex(open);
    if (!mutex || qp_sqlite.mutex_try(mutex) != 0) {
        return;
    }
    for (int i = 0; i < words->hidden_count; i++) {
        for (int j = 0; j < words->table_count; j++) {
            learn(open, &words->tables[j], &words->hidden[i]);
        }
    }
    qp_sqlite.mutex_leave(mutex);
}
