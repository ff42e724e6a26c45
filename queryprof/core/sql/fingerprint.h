/* From a SQL text to its statement: what is left when literals, comments, white space and the
 * case of keywords do not count.
 */
#ifndef QP_SQL_FINGERPRINT_H
#define QP_SQL_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>

#include "sql/words.h"

/* Statements are told apart by this many bytes of their normal form; longer ones are cut. */
/* Writes the statement of `sql` (any bytes at all, `length` of them) to `out`, which holds
 * QP_STATEMENT_BYTES, and returns how many bytes it wrote. Linear time, no allocation. The
 * caller owns both texts. With the GIL.
 *
 * Words in double quotes or backquotes are literals too, unless they are names by where they stand,
 * or are known as columns of the text's tables. Of a text that was refused for a name, words that
 * may be values are literals, with quotes or without; of one that is no SQL, all but keywords. */
size_t qp_fingerprint(const char *sql, size_t length, qp_dialect dialect, qp_text_kind kind,
                      char *out);

/* What stands in a text for SQLite; valid until the next call. NULL: no word of it is in quotes
 * that may enclose a value. */
const qp_sql_words *qp_fingerprint_words(const char *sql, size_t length);

#endif
