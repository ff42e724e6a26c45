/* Words of SQL texts, as sets of their hashes: names in a text, and words that SQLite took as
 * names.
 *
 * If a word in double quotes is not a name, SQLite takes the word as a string (a misfeature that
 * SQLite keeps, https://www.sqlite.org/quirks.html#double_quoted_string_literals_are_accepted).
 * Such words may be secrets. The case of a name does not count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum length of a normal form in bytes. Longer forms are cut. */
enum { QP_STATEMENT_BYTES = 16384 };

/* How far the words of a text can be trusted to be names. */
typedef enum {
    QP_TEXT_SQL,           /* the database accepted the text, or nothing is known yet */
    QP_TEXT_UNKNOWN_NAMES, /* the database does not know a name in the text, so an unquoted word
                            * in the place of a value may be a value */
    QP_TEXT_NO_SQL         /* the text may be anything */
} qp_text_kind;

/* SQL dialect: decides where literals and comments end. */
typedef enum {
    QP_SQLITE,
    QP_STANDARD_SQL, /* also PostgreSQL: words in double quotes are names, E'' has backslashes,
                      * comments can be nested */
    QP_ANY_SQL       /* unknown: where the dialect matters, the rest of the text is not shown */
} qp_dialect;

/* The database system that a statement is sent to. */
typedef enum {
    QP_SYSTEM_UNKNOWN, /* the text is not SQL */
    QP_SYSTEM_SQLITE,
    QP_SYSTEM_POSTGRESQL,
    QP_SYSTEM_DUCKDB,
    QP_SYSTEM_OTHER, /* the system of another driver, which only the program knows */
    QP_SYSTEM_MYSQL,
    QP_SYSTEM_ORACLE,
    QP_SYSTEMS
} qp_system;

/* Returns whether a database system reads words in double quotes only as names, never as
 * strings. */
static inline bool qp_system_quotes_names(qp_system system)
{
    return system == QP_SYSTEM_POSTGRESQL || system == QP_SYSTEM_DUCKDB;
}

enum { QP_WORD_SLOTS = 256, QP_WORDS_KEPT = 16 };

/* A set of words. Words that do not fit are dropped. */
typedef struct {
    uint64_t slots[QP_WORD_SLOTS]; /* 0 if free */
    int count;
} qp_word_set;

typedef struct {
    const char *text; /* a part of the SQL text, without quotes */
    size_t length;
} qp_word;

/* The words of one text. */
typedef struct {
    qp_word_set names;   /* words that are certainly names if SQLite accepts the text: without
                          * quotes, or by their position */
    qp_word_set aliases; /* quoted words at the position of a column's or table's name */
    qp_word_set values;  /* quoted words at the position of a value */
    qp_word tables[QP_WORDS_KEPT];
    int table_count;
    qp_word hidden[QP_WORDS_KEPT]; /* quoted words that may be values */
    int hidden_count;
} qp_sql_words;

uint64_t qp_word_hash(const char *text, size_t length);
bool qp_word_set_has(const qp_word_set *set, uint64_t hash);
void qp_word_set_add(qp_word_set *set, uint64_t hash);

/* Allocates the set of columns. Returns false if out of memory. */
bool qp_known_columns_start(void);
void qp_known_columns_stop(void);

/* Adds a column of a table to the set, as SQLite reported it. */
void qp_known_columns_add(const qp_word *table, const qp_word *column);

/* Returns whether one of the tables of a text is known to have this column. */
bool qp_column_is_known(const qp_sql_words *words, uint64_t column);
