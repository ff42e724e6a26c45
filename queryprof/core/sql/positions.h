/* Decides by the position of a word in an SQL text whether the word is a keyword, a name, or
 * perhaps a value. */
#pragma once

#include "sql/scanner.h"

/* Returns whether a word is a name here although it is one of SQLite's keywords. SQLite allows many
 * keywords as names (`FROM rows`, `WHERE key = ?`). `end` is the end of the word. */
bool qp_keyword_is_name(scanner *s, const char *keyword, const unsigned char *end);

/* Returns whether a word in quotes or brackets is shown as a name. A word that is not shown as a
 * name may be a value. Records the word while words are collected. `text` is the word without its
 * quotes, `end` is after the closing quote. */
bool qp_quoted_is_name(scanner *s, const unsigned char *text, size_t length, char quote,
                       const unsigned char *end);

/* Returns whether a word without quotes is shown, and records the word while words are collected.
 * The word is not shown if the text may not be SQL, or if the statement takes the word as a
 * value. */
bool qp_word_is_shown(scanner *s, const unsigned char *text, size_t length);

/* Update the scanner's clause. Call the first function before `keyword`, which follows s->keyword,
 * is written. Call the second function after a name was written. */
void qp_update_clause_after_keyword(scanner *s, const char *keyword);
void qp_update_clause_after_name(scanner *s);

/* Returns the content of a parenthesis that opens here. */
clause_kind qp_clause_in_parenthesis(const scanner *s);
