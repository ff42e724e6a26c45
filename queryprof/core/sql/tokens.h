/* Where a token of a SQL text ends that is no word: literals, parameters, operators. Each function
 * looks at what begins at s->at, and returns its bytes; 0 when there is no such token.
 */
#ifndef QP_SQL_TOKENS_H
#define QP_SQL_TOKENS_H

#include "sql/scanner.h"

/* A literal between dollars ($$...$$, $tag$...$tag$); one that is never closed goes on to the end.
 */
size_t qp_dollar_quoted_length(const scanner *s);

/* What is between quotes, from the opening one. Where a backslash may have taken a quote, the text
 * may go on otherwise than it seems: no word of it is shown. */
size_t qp_quoted_length(scanner *s, unsigned char close);

/* PostgreSQL's literal E'...' from its quote on: a backslash takes the next character. */
size_t qp_escaped_length(const scanner *s);

/* A parameter: ?, ?1, :a, @a, $a, $a::b(c). */
size_t qp_parameter_length(const scanner *s);

/* A parameter of other drivers: %s, %b, %(name)s; and no remainder (a %s: by the column s). */
size_t qp_format_length(const scanner *s);

/* An operator: at least the character that is there. */
size_t qp_operator_length(const scanner *s);

bool qp_number_starts(const unsigned char *at, const unsigned char *end);
void qp_skip_number(scanner *s);

/* Whether a sign here belongs to a number: part of the literal, not an operation. */
bool qp_at_signed_number(scanner *s);

#endif
