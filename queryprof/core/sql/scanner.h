/* The state of a scan over a SQL text, and the classes of characters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sql/words.h"

typedef enum {
    NOTHING,
    WORD,
    KEYWORD,
    QUOTED,
    LITERAL,
    PARAMETER,
    OPERATOR,
    OPEN,
    CLOSE,
    COMMA,
    DOT,
    SEMICOLON
} token_kind;

/* The kind of list in which a comma or semicolon separates items. Equal neighbors in such a list
 * become one item. */
typedef enum { SCRIPT, VALUES, IN_LIST, PARENTHESES } scope_kind;

/* The content of a clause, which decides whether a word in quotes is a name there. */
typedef enum {
    EXPRESSIONS,
    TABLES,      /* in a FROM */
    NAMES,       /* column names */
    DEFINITIONS, /* column definitions: each begins with a name */
    SIZES,       /* the sizes of a type */
    ASSIGNMENTS, /* in a SET */
    ORDER        /* in an ORDER BY or GROUP BY */
} clause_kind;

typedef struct {
    scope_kind kind;
    clause_kind clause;
    bool item_open;    /* item_start is set */
    bool has_previous; /* the kept item is from previous_start to previous_end */
    size_t item_start;
    size_t previous_start;
    size_t previous_end;
    token_kind previous_last;
} scope;

/* Lists in parentheses deeper than SCOPES are not folded. */
enum { SCOPES = 64, MAX_NAME = 1000 /* bytes of a name in parentheses: %(name)s */ };

typedef struct {
    const unsigned char *at;
    const unsigned char *end;
    char *out;
    size_t length;
    bool full;
    token_kind last;
    bool last_is_in;            /* the last token is the keyword IN */
    const char *keyword;        /* the last keyword of the statement, upper case; or "" */
    const char *keyword_before; /* the keyword before that keyword; or "" */
    const char *verb;           /* the statement's first keyword; or "" */
    clause_kind opens;          /* the content of a parenthesis after the name here */
    qp_dialect dialect;         /* the text's dialect */
    qp_text_kind kind;          /* how far the rest of the text, from `at` on, can be trusted */
    bool dot_follows_name;      /* the last dot follows a name, not a literal */
    const qp_sql_words *words;  /* words of the whole text; NULL: being collected into `found` */
    qp_sql_words *found;
    const char *name; /* the last word that is not a keyword, in the text; NULL: none yet */
    size_t name_length;
    scope scopes[SCOPES];
    int depth;       /* index of the innermost scope in `scopes` */
    size_t unfolded; /* open parentheses beyond SCOPES */
} scanner;

static inline bool is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static inline bool is_word_start(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static inline bool is_word(unsigned char c)
{
    return is_word_start(c) || is_digit(c) || c == '$';
}

static inline size_t skip_quoted(const unsigned char *at, const unsigned char *end,
                                 unsigned char close)
{
    const unsigned char *p = at + 1;
    while (p < end) {
        if (*p == close) {
            if (close != ']' && p + 1 < end && p[1] == close) {
                p += 2;
                continue;
            }
            return (size_t)(p + 1 - at);
        }
        p++;
    }
    return (size_t)(end - at); /* never closed: the rest of the text belongs to the literal */
}

/* Returns the end of the comment that begins here. */
static inline const unsigned char *skip_comment(scanner *s, const unsigned char *at)
{
    int depth = 1;
    at += 2;
    bool is_code = s->end - at > 1 && at[*at == 'M'] == '!'; /* MySQL and MariaDB run the content of
                                                              * such a comment */
    s->kind = is_code && s->dialect == QP_ANY_SQL ? QP_TEXT_NO_SQL : s->kind;
    while (depth && s->end - at >= 2) {
        if (at[0] == '*' && at[1] == '/') {
            depth--;
            at += 2;
        } else if (at[0] == '/' && at[1] == '*' && s->dialect != QP_SQLITE) {
            if (s->dialect == QP_ANY_SQL) { /* unknown whether comments nest */
                s->kind = QP_TEXT_NO_SQL;
            }
            depth += s->dialect == QP_STANDARD_SQL;
            at += 2;
        } else {
            at++;
        }
    }
    return depth ? s->end : at;
}

static inline bool has_quote(const unsigned char *at, const unsigned char *end)
{
    size_t length = (size_t)(end - at);
    return memchr(at, '\'', length) || memchr(at, '"', length) || memchr(at, '`', length);
}

static inline const unsigned char *skip_blanks(scanner *s, const unsigned char *at)
{
    while (at < s->end) {
        if (is_space(*at)) {
            at++;
        } else if (s->end - at >= 2 && at[0] == '-' && at[1] == '-') {
            const unsigned char *begin = at, *line_end = memchr(at, '\n', (size_t)(s->end - at));
            at = line_end ? line_end + 1 : s->end;
            /* In MySQL, -- starts a comment only if a blank follows. Otherwise a literal may begin
             * in the apparent comment, and end after it. */
            if (s->dialect == QP_ANY_SQL && at - begin > 2 && !is_space(begin[2]) &&
                has_quote(begin, at)) {
                s->kind = QP_TEXT_NO_SQL;
            }
        } else if (s->end - at >= 2 && at[0] == '/' && at[1] == '*') {
            at = skip_comment(s, at);
        } else {
            break;
        }
    }
    return at;
}

/* Returns whether a binary operator can follow here. */
static inline bool after_operand(const scanner *s)
{
    return s->last == WORD || s->last == QUOTED || s->last == LITERAL || s->last == PARAMETER ||
           s->last == CLOSE;
}

static inline clause_kind clause_of(const scanner *s)
{
    return s->unfolded ? EXPRESSIONS : s->scopes[s->depth].clause;
}

static inline bool is_keyword(const char *keyword, const char *wanted)
{
    return strcmp(keyword, wanted) == 0;
}
