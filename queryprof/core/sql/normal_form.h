/* Converts a SQL text to its normal form: without literals, comments, white space and the case of
 * keywords.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sql/words.h"

/* Writes the normal form of `sql` (any bytes, `length` of them) to `out`, which holds
 * QP_STATEMENT_BYTES, and returns the number of bytes written. Takes linear time and allocates
 * nothing. The caller owns both texts. The caller must hold the GIL.
 *
 * Words in double quotes or backquotes also count as literals, unless they are names by their
 * position, or known columns of the text's tables. If the database refused the text because of a
 * name, words that may be values count as literals, with or without quotes. In a text that is not
 * SQL, all words except keywords count as literals. */
size_t qp_write_normal_form(const char *sql, size_t length, qp_dialect dialect, qp_text_kind kind,
                            char *out);

/* Returns the words of a text for SQLite (static, valid until the next call). NULL if the text has
 * no word in quotes that may enclose a value. */
const qp_sql_words *qp_normal_form_words(const char *sql, size_t length);
