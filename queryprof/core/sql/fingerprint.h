/* From a SQL text to its normal form: without literals, comments, white space and the case of
 * keywords.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sql/words.h"

/* Writes the normal form of `sql` (any bytes, `length` of them) to `out`, which holds
 * QP_STATEMENT_BYTES, and returns the number of bytes written. Linear time, no allocation. The
 * caller owns both texts. The caller must hold the GIL.
 *
 * Words in double quotes or backquotes are also literals, unless they are names by position, or
 * known columns of the text's tables. In a text that was refused for a name, words that may be
 * values are literals, with or without quotes. In a text that is not SQL, all words but keywords
 * are literals. */
size_t qp_fingerprint(const char *sql, size_t length, qp_dialect dialect, qp_text_kind kind,
                      char *out);

/* The words of a text for SQLite; valid until the next call. NULL if the text has no word in quotes
 * that may enclose a value. */
const qp_sql_words *qp_fingerprint_words(const char *sql, size_t length);
