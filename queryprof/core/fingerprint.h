/* From a SQL text to its statement: what is left when literals, comments, white space and the
 * case of keywords do not count.
 */
#ifndef QP_FINGERPRINT_H
#define QP_FINGERPRINT_H

#include <stddef.h>

/* Statements are told apart by this many bytes of their normal form; longer ones are cut. */
enum { QP_STATEMENT_BYTES = 16384 };

/* Writes the statement of `sql` (any bytes at all, `length` of them) to `out`, which holds
 * QP_STATEMENT_BYTES, and returns how many bytes it wrote. Linear time, no allocation. The
 * caller owns both texts. */
size_t qp_fingerprint(const char *sql, size_t length, char *out);

#endif
