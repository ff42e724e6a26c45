#include "sql/tokens.h"

size_t qp_dollar_quoted_length(const scanner *s)
{
    const unsigned char *p = s->at + 1;
    while (p < s->end && is_word(*p) && *p != '$') {
        p++;
    }
    if (*s->at != '$' || p == s->end || *p != '$') {
        return 0;
    }
    size_t tag = (size_t)(p + 1 - s->at);
    for (p++; (p = memchr(p, '$', (size_t)(s->end - p))) && (size_t)(s->end - p) >= tag; p++) {
        if (!memcmp(p, s->at, tag)) {
            return (size_t)(p - s->at) + tag;
        }
    }
    return (size_t)(s->end - s->at);
}

size_t qp_parameter_length(const scanner *s)
{
    const unsigned char *p = s->at + 1;
    if (*s->at == '?') {
        while (p < s->end && is_digit(*p)) {
            p++;
        }
        return (size_t)(p - s->at);
    }
    /* Parameters of PostgreSQL and DuckDB begin with $. A : belongs to a slice or a struct. */
    bool is_other = s->dialect == QP_STANDARD_SQL && *s->at != '$';
    if (p >= s->end || !is_word(*p) || is_other) {
        return 0;
    }
    while (p < s->end && is_word(*p)) {
        p++;
        if (*s->at == '$' && s->end - p > 2 && p[0] == ':' && p[1] == ':' && is_word(p[2])) {
            p += 2;
        }
    }
    if (*s->at == '$' && p < s->end && *p == '(') {
        const unsigned char *q = p + 1;
        while (q < s->end && q - p < MAX_NAME && *q != ')' && !is_space(*q)) {
            q++;
        }
        p = q < s->end && *q == ')' ? q + 1 : p;
    }
    return (size_t)(p - s->at);
}

bool qp_number_starts(const unsigned char *at, const unsigned char *end)
{
    return at < end && (is_digit(*at) || (*at == '.' && end - at > 1 && is_digit(at[1])));
}

void qp_skip_number(scanner *s)
{
    bool hexadecimal = s->end - s->at > 1 && s->at[0] == '0' && (s->at[1] | 32) == 'x';
    while (s->at < s->end && (is_word(*s->at) || *s->at == '.')) {
        unsigned char c = *s->at++;
        if ((c | 32) == 'e' && !hexadecimal && s->end - s->at > 1 &&
            (*s->at == '+' || *s->at == '-') && is_digit(s->at[1])) {
            s->at++;
        }
    }
}

/* Returns the length of a PostgreSQL operator. An operator may end in + or - only if it contains
 * one of the special characters (https://www.postgresql.org/docs/current/sql-syntax-lexical.html).
 * A ? is a parameter, not an operator. */
static size_t postgresql_operator_length(const scanner *s)
{
    static const char special[] = "~!@#%^&|`";
    size_t room = (size_t)(s->end - s->at), length = 0;
    bool has_special = false;
    while (length < room && s->at[length] && strchr("+-*/<>=~!@#%^&|`", s->at[length])) {
        const unsigned char *p = s->at + length;
        bool has_next = length + 1 < room;
        bool is_comment =
            has_next && ((p[0] == '-' && p[1] == '-') || (p[0] == '/' && p[1] == '*'));
        bool is_format = has_next && p[0] == '%' && strchr("(sbt", p[1]);
        if (length && (is_comment || is_format)) {
            break;
        }
        has_special = has_special || strchr(special, *p);
        length++;
    }
    while (length > 1 && !has_special && strchr("+-", s->at[length - 1])) {
        length--;
    }
    return length;
}

size_t qp_operator_length(const scanner *s)
{
    size_t own = s->dialect == QP_STANDARD_SQL ? postgresql_operator_length(s) : 0;
    if (own) {
        return own;
    }
    static const char *const pairs[] = {"||", "<=", ">=", "<>", "!=", "==", "<<", ">>", "->", "::"};
    if (s->end - s->at >= 3 && !memcmp(s->at, "->>", 3)) {
        return 3;
    }
    for (size_t i = 0; s->end - s->at >= 2 && i < sizeof pairs / sizeof *pairs; i++) {
        if (!memcmp(s->at, pairs[i], 2)) {
            return 2;
        }
    }
    return 1;
}

bool qp_bracket_begins_name(scanner *s)
{
    if (s->dialect != QP_ANY_SQL) {
        return s->dialect == QP_SQLITE; /* PostgreSQL's brackets belong to arrays */
    }
    const unsigned char *p = s->at + 1;
    bool is_name = p < s->end && is_word_start(*p);
    while (is_name && p < s->end && (is_word(*p) || *p == ' ')) {
        p++;
    }
    if (is_name && p < s->end && *p == ']') {
        return true;
    }
    for (p = s->at; p < s->end && *p != ']'; p++) {
        if (*p == '\'' || *p == '"' || *p == '`') {
            s->kind = QP_TEXT_NO_SQL; /* unknown whether the quote belongs to a name, or to a value
                                       * in an array */
        }
    }
    return false;
}

size_t qp_format_parameter_length(const scanner *s)
{
    const unsigned char *p = s->at + 1;
    if (*s->at != '%' || after_operand(s)) {
        return 0;
    }
    if (p < s->end && *p == '(') {
        size_t room = s->end - p < MAX_NAME ? (size_t)(s->end - p) : MAX_NAME;
        const unsigned char *close = memchr(p, ')', room);
        p = close ? close + 1 : s->end;
    }
    bool ends =
        p < s->end && (*p == 's' || *p == 'b' || *p == 't') && (p + 1 == s->end || !is_word(p[1]));
    return ends ? (size_t)(p + 1 - s->at) : 0;
}

bool qp_at_signed_number(scanner *s)
{
    if ((*s->at != '-' && *s->at != '+') || after_operand(s)) {
        return false;
    }
    return qp_number_starts(skip_blanks(s, s->at + 1), s->end);
}

size_t qp_escaped_literal_length(const scanner *s)
{
    const unsigned char *p = s->at + 1, *end = s->end;
    while (p < end && (*p != '\'' || (p + 1 < end && p[1] == '\''))) {
        p += (*p == '\\' || *p == '\'') && end - p > 1 ? 2 : 1;
    }
    return (size_t)((p < end ? p + 1 : end) - s->at);
}

size_t qp_quoted_text_length(scanner *s, unsigned char close)
{
    size_t length = skip_quoted(s->at, s->end, close);
    for (size_t i = 1; s->dialect != QP_SQLITE && i < length; i++) {
        if (s->at[i] == close && s->at[i - 1] == '\\') {
            s->kind = QP_TEXT_NO_SQL; /* the end of the quoted text depends on a setting, and on
                                       * whether a literal E'' continues here */
        }
    }
    return length;
}
