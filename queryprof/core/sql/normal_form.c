#include "sql/normal_form.h"

#include <stdbool.h>
#include <string.h>

#include "sql/keywords.h"
#include "sql/normal_form_writer.h"
#include "sql/positions.h"
#include "sql/scanner.h"
#include "sql/tokens.h"

/* Returns whether a keyword is part of EXPLAIN QUERY PLAN; the statement's own verb follows. */
static bool is_explain_keyword(const char *verb)
{
    return is_keyword(verb, "EXPLAIN") || is_keyword(verb, "QUERY") || is_keyword(verb, "PLAN");
}

/* Returns whether a name here is the name of a savepoint. Libraries give each savepoint a different
 * name. */
static bool is_savepoint_name(const scanner *s)
{
    bool rolls_back = is_keyword(s->verb, "ROLLBACK");
    return is_keyword(s->verb, "SAVEPOINT") || is_keyword(s->verb, "RELEASE") ||
           (rolls_back && (is_keyword(s->keyword, "TO") || is_keyword(s->keyword, "SAVEPOINT")));
}

static void put_word(scanner *s, const unsigned char *word, size_t length)
{
    const char *keyword = s->last == DOT ? NULL : qp_sql_keyword(word, length);
    bool is_savepoint = is_savepoint_name(s);
    bool is_word = is_savepoint && keyword && is_keyword(keyword, "SAVEPOINT");
    if (!is_word && (!keyword || qp_keyword_is_name(s, keyword, word + length))) {
        bool is_shown = qp_word_is_shown(s, word, length) && !is_savepoint;
        s->name = (const char *)word;
        s->name_length = length;
        qp_put_token(s, is_shown ? WORD : LITERAL, is_shown ? (const char *)word : "?",
                     is_shown ? length : 1);
        return;
    }
    if (is_keyword(keyword, "FROM") && s->last == KEYWORD && is_keyword(s->keyword, "DISTINCT")) {
        qp_put_token(s, OPERATOR, keyword, length); /* IS DISTINCT FROM compares */
        return;
    }
    scope *innermost = &s->scopes[s->depth];
    if (strcmp(keyword, "NULL") == 0 && (s->last == OPEN || s->last == COMMA) && !s->unfolded) {
        bool in_row = s->depth > 0 && s->scopes[s->depth - 1].kind == VALUES;
        if (in_row || innermost->kind == IN_LIST) {
            qp_put_token(s, LITERAL, "?", 1);
            return;
        }
    }
    bool query = !strcmp(keyword, "SELECT") || !strcmp(keyword, "WITH");
    bool values = !strcmp(keyword, "VALUES");
    if (innermost->kind == IN_LIST && s->last == OPEN && (query || values)) {
        innermost->kind = PARENTHESES; /* IN (SELECT ...) is not a list of values */
    }
    if (!s->unfolded && innermost->kind == VALUES) {
        qp_close_values_list(s);
    }
    qp_update_clause_after_keyword(s, keyword);
    qp_put_token(s, KEYWORD, keyword, length);
    s->keyword_before = s->keyword;
    s->keyword = keyword;
    s->verb = *s->verb && !is_explain_keyword(s->verb) ? s->verb : keyword;
    s->last_is_in = !strcmp(keyword, "IN");
    if (values) {
        qp_open_scope(s, VALUES);
    }
}

static void put_word_or_prefixed_literal(scanner *s)
{
    const unsigned char *start = s->at;
    while (s->at < s->end && is_word(*s->at)) {
        s->at++;
    }
    size_t length = (size_t)(s->at - start);
    bool is_prefix = s->at < s->end && *s->at == '\'';
    if (is_prefix && s->dialect == QP_ANY_SQL && (s->at[-1] | 32) == 'q' &&
        (length == 1 || (length == 2 && (*start | 32) == 'n'))) {
        s->kind = QP_TEXT_NO_SQL; /* Oracle's q'[it's]', whose end is unknown */
    }
    if (length == 1 && is_prefix) { /* x'00ff' */
        s->at += (*start | 32) == 'e' && s->dialect != QP_SQLITE ? qp_escaped_literal_length(s)
                                                                 : qp_quoted_text_length(s, '\'');
        qp_put_token(s, LITERAL, "?", 1);
    } else {
        put_word(s, start, length);
    }
}

static void put_quoted(scanner *s, unsigned char quote)
{
    size_t length = qp_quoted_text_length(s, quote == '[' ? ']' : quote);
    const unsigned char *end = s->at + length;
    size_t inside = length > 1 ? length - 2 : 0;
    /* In MySQL, a quoted text directly after another quoted text continues that text. */
    bool goes_on = s->dialect == QP_ANY_SQL && quote == '"' && s->last == LITERAL;
    bool is_name = qp_quoted_is_name(s, s->at + 1, inside, (char)quote, end) &&
                   !is_savepoint_name(s) && !goes_on;
    qp_put_token(s, is_name ? QUOTED : LITERAL, is_name ? (const char *)s->at : "?",
                 is_name ? length : 1);
    s->at = end;
}

/* Writes a number. A number that is a column's position or a type's length is not a value, so it is
 * shown. */
static void put_number(scanner *s)
{
    enum { LONGEST = 4 };
    const unsigned char *start = s->at;
    qp_skip_number(s);
    size_t length = (size_t)(s->at - start);
    const unsigned char *next = skip_blanks(s, s->at);
    bool ends = next == s->end || strchr(",);", *next) || is_word_start(*next);
    bool is_item = (s->last == KEYWORD && is_keyword(s->keyword, "BY")) ||
                   (s->last == COMMA && clause_of(s) == ORDER);
    bool is_size = clause_of(s) == SIZES;
    bool is_shown = length < LONGEST && ((is_item && ends) || is_size);
    qp_put_token(s, LITERAL, is_shown ? (const char *)start : "?", is_shown ? length : 1);
}

/* Returns whether the PRAGMA takes a table or index name in parentheses. */
static bool pragma_takes_name(const scanner *s)
{
    static const char *const pragmas[] = {"table_info", "table_xinfo",      "index_list",
                                          "index_info", "index_xinfo",      "foreign_key_list",
                                          "table_list", "foreign_key_check"};
    bool takes = false;
    for (size_t i = 0; i < sizeof pragmas / sizeof *pragmas; i++) {
        takes = takes || (s->name && strlen(pragmas[i]) == s->name_length &&
                          !memcmp(pragmas[i], s->name, s->name_length));
    }
    return takes;
}

/* Hides the value of a PRAGMA, up to the end of the statement, because the value may be the key of
 * a database. */
static void put_pragma_value(scanner *s)
{
    bool in_parentheses = *s->at == '(';
    qp_put_token(s, in_parentheses ? OPEN : OPERATOR, (const char *)s->at, 1);
    qp_put_token(s, LITERAL, "?", 1);
    while (s->at < s->end && *s->at != ';') {
        bool quoted = *s->at == '\'' || *s->at == '"' || *s->at == '`';
        s->at += quoted ? skip_quoted(s->at, s->end, *s->at) : 1;
    }
    if (in_parentheses) {
        qp_put_token(s, CLOSE, ")", 1);
    }
}

static void scan_token(scanner *s)
{
    unsigned char c = *s->at;
    size_t length;
    if (is_keyword(s->verb, "PRAGMA") && (c == '=' || (c == '(' && !pragma_takes_name(s)))) {
        put_pragma_value(s);
    } else if (c == '\'') {
        s->at += qp_quoted_text_length(s, '\'');
        qp_put_token(s, LITERAL, "?", 1);
    } else if (c == '"' || c == '`' || (c == '[' && qp_bracket_begins_name(s))) {
        put_quoted(s, c);
    } else if (c == '$' && (length = qp_dollar_quoted_length(s))) {
        s->at += length;
        qp_put_token(s, LITERAL, "?", 1);
    } else if (qp_number_starts(s->at, s->end)) {
        put_number(s);
    } else if (is_word_start(c)) {
        put_word_or_prefixed_literal(s);
    } else if (((c == '?' || c == ':' || c == '@' || c == '$') &&
                (length = qp_parameter_length(s))) ||
               (length = qp_format_parameter_length(s))) {
        bool is_shown = s->kind != QP_TEXT_NO_SQL || length == 1;
        qp_put_token(s, is_shown ? PARAMETER : LITERAL, is_shown ? (const char *)s->at : "?",
                     is_shown ? length : 1);
        s->at += length;
    } else if (qp_at_signed_number(s)) {
        s->at++;
    } else if (c == '(') {
        s->at++;
        qp_put_open_parenthesis(s);
    } else if (c == ')') {
        s->at++;
        qp_put_close_parenthesis(s);
    } else if (c == ',') {
        s->at++;
        qp_put_separator(s, COMMA, ",", VALUES);
    } else if (c == ';') {
        s->at++;
        qp_put_separator(s, SEMICOLON, ";", SCRIPT);
    } else if (c == '.') {
        s->at++;
        qp_put_token(s, DOT, ".", 1);
    } else {
        if (c == '#' && s->dialect == QP_ANY_SQL) { /* MySQL's comment, or an operator */
            s->kind = QP_TEXT_NO_SQL;
        }
        length = qp_operator_length(s);
        qp_put_token(s, OPERATOR, (const char *)s->at, length);
        s->at += length;
    }
}

static size_t scan_sql(const char *sql, size_t length, qp_dialect dialect, qp_text_kind kind,
                       char *out, const qp_sql_words *words, qp_sql_words *found)
{
    scanner s = {.at = (const unsigned char *)sql,
                 .end = (const unsigned char *)sql + length,
                 .out = out,
                 .last = NOTHING,
                 .keyword = "",
                 .keyword_before = "",
                 .verb = "",
                 .dialect = dialect,
                 .kind = kind,
                 .words = words,
                 .found = found};
    s.at = skip_blanks(&s, s.at);
    while (s.at < s.end && !s.full) {
        scan_token(&s);
        s.at = skip_blanks(&s, s.at);
    }
    qp_close_values_list(&s);
    if (s.depth == 0) {
        qp_end_list_item(&s, &s.scopes[0]);
    }
    while (s.length && (out[s.length - 1] == ';' || out[s.length - 1] == ' ')) {
        s.length--;
    }
    /* A cut must not leave part of a character. */
    while (s.full && s.length && ((unsigned char)out[s.length - 1] & 0x80)) {
        s.length--;
    }
    return s.length;
}

static char scratch[QP_STATEMENT_BYTES];
static qp_sql_words collected;

static const qp_sql_words *collect_words(const char *sql, size_t length, qp_dialect dialect)
{
    collected = (qp_sql_words){.table_count = 0};
    scan_sql(sql, length, dialect, QP_TEXT_SQL, scratch, NULL, &collected);
    return &collected;
}

static bool has_quotes(const char *sql, size_t length)
{
    return memchr(sql, '"', length) || memchr(sql, '`', length);
}

size_t qp_write_normal_form(const char *sql, size_t length, qp_dialect dialect, qp_text_kind kind,
                            char *out)
{
    static const qp_sql_words none;
    bool is_plain = kind == QP_TEXT_NO_SQL || !has_quotes(sql, length);
    const qp_sql_words *words = is_plain ? &none : collect_words(sql, length, dialect);
    return scan_sql(sql, length, dialect, kind, out, words, NULL);
}

const qp_sql_words *qp_normal_form_words(const char *sql, size_t length)
{
    const qp_sql_words *words =
        has_quotes(sql, length) ? collect_words(sql, length, QP_SQLITE) : NULL;
    return words && words->hidden_count ? words : NULL;
}
