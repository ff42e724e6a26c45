/* Tokens of an SQL text other than words: literals, parameters, operators. Each function reads the
 * token that begins at s->at, and returns its length, or 0 for another kind of token. */
#pragma once

#include "sql/scanner.h"

/* Returns the length of a literal between dollars ($$...$$, $tag$...$tag$). An unclosed literal
 * extends to the end. */
size_t qp_dollar_quoted_length(const scanner *s);

/* Returns the length of a quoted text, from its opening quote. If a backslash may have escaped a
 * quote, the rest of the text is ambiguous, and none of its words is shown. */
size_t qp_quoted_text_length(scanner *s, unsigned char close);

/* Returns whether the bracket at the scanner's position begins a name. If the dialect is unknown
 * and the bracket contains a quote, the text after the bracket is not shown. */
bool qp_bracket_begins_name(scanner *s);

/* Returns the length of PostgreSQL's literal E'...', from its quote on. A backslash escapes the
 * next character. */
size_t qp_escaped_literal_length(const scanner *s);

/* Returns the length of a parameter: ?, ?1, :a, @a, $a, $a::b(c). */
size_t qp_parameter_length(const scanner *s);

/* Returns the length of another driver's parameter: %s, %b, %t, %(name)s. 0 for a modulo (`a %s` is
 * the column a modulo the column s). */
size_t qp_format_parameter_length(const scanner *s);

/* Returns the length of an operator: at least one character. */
size_t qp_operator_length(const scanner *s);

bool qp_number_starts(const unsigned char *at, const unsigned char *end);
void qp_skip_number(scanner *s);

/* Returns whether a sign here is part of a number, and not an operator. */
bool qp_at_signed_number(scanner *s);
