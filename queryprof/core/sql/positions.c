#include "sql/positions.h"

#include "sql/keywords.h"

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

/* Returns whether a keyword precedes the name of a table, an index, a column or the like. */
static bool is_before_name(const char *keyword)
{
    static const char *const words[] = {
        "FROM",       "JOIN",      "INTO",       "UPDATE",  "TABLE",  "INDEX",   "VIEW",
        "TRIGGER",    "EXISTS",    "REFERENCES", "ADD",     "COLUMN", "RENAME",  "TO",
        "CONSTRAINT", "COLLATE",   "SAVEPOINT",  "RELEASE", "DETACH", "WINDOW",  "PRAGMA",
        "REINDEX",    "ANALYZE",   "ABORT",      "FAIL",    "IGNORE", "REPLACE", "ROLLBACK",
        "WITH",       "RECURSIVE", NULL};
    return is_one_of(keyword, words);
}

/* Returns the character that follows a word, after blanks; 0 at the end. */
static unsigned char next_character(scanner *s, const unsigned char *end)
{
    const unsigned char *next = skip_blanks(s, end);
    return next < s->end ? *next : 0;
}

/* Returns the keyword that follows a word, or NULL. */
static const char *keyword_after(scanner *s, const unsigned char *end)
{
    const unsigned char *next = skip_blanks(s, end), *p = next;
    while (p < s->end && is_word(*p)) {
        p++;
    }
    return p > next && is_word_start(*next) ? qp_sql_keyword(next, (size_t)(p - next)) : NULL;
}

/* Returns whether SQLite also accepts a keyword as a name, where a keyword is not possible
 * (%fallback in SQLite's parse.y). */
static bool may_be_name(const char *keyword)
{
    static const char *const words[] = {
        "ABORT",     "ACTION",    "AFTER",        "ALWAYS",    "ANALYZE",   "ASC",
        "ATTACH",    "BEFORE",    "BEGIN",        "CASCADE",   "CONFLICT",  "CURRENT",
        "DATABASE",  "DEFERRED",  "DESC",         "DETACH",    "DO",        "EACH",
        "END",       "EXCLUDE",   "EXCLUSIVE",    "EXPLAIN",   "FAIL",      "FILTER",
        "FIRST",     "FOLLOWING", "FOR",          "FULL",      "GENERATED", "GROUPS",
        "IF",        "IGNORE",    "IMMEDIATE",    "INITIALLY", "INSTEAD",   "KEY",
        "LAST",      "MATCH",     "MATERIALIZED", "NO",        "NULLS",     "OF",
        "OFFSET",    "OTHERS",    "OVER",         "PARTITION", "PLAN",      "PRAGMA",
        "PRECEDING", "QUERY",     "RANGE",        "RECURSIVE", "RELEASE",   "RENAME",
        "REPLACE",   "RESTRICT",  "ROLLBACK",     "ROW",       "ROWS",      "SAVEPOINT",
        "TEMP",      "TEMPORARY", "TIES",         "TRIGGER",   "UNBOUNDED", "VACUUM",
        "VIEW",      "VIRTUAL",   "WINDOW",       "WITHOUT",   NULL};
    return is_one_of(keyword, words);
}

/* Returns whether an operand is expected here, and not an operator or a keyword that ends a
 * clause. */
static bool wants_operand(const scanner *s)
{
    static const char *const words[] = {"SELECT",   "WHERE",   "AND",       "OR",   "NOT",
                                        "ON",       "BY",      "SET",       "WHEN", "THEN",
                                        "ELSE",     "CASE",    "HAVING",    "ALL",  "LIKE",
                                        "DISTINCT", "BETWEEN", "RETURNING", NULL};
    return s->last == OPERATOR || s->last == OPEN || s->last == COMMA ||
           (s->last == KEYWORD && is_one_of(s->keyword, words));
}

static bool begins_item(const scanner *s)
{
    return s->last == OPEN || s->last == COMMA;
}

bool qp_keyword_is_name(scanner *s, const char *keyword, const unsigned char *end)
{
    static const char *const followers[] = {"FROM", "AS",   "IN",      "IS",      "LIKE",
                                            "AND",  "OR",   "ASC",     "DESC",    "NOT",
                                            "WHEN", "GLOB", "BETWEEN", "COLLATE", NULL};
    if (!may_be_name(keyword)) {
        return false;
    }
    unsigned char next = next_character(s, end);
    const char *after = keyword_after(s, end);
    clause_kind clause = clause_of(s);
    if (s->last == KEYWORD && is_keyword(s->keyword, "AS")) {
        return next != '(';
    }
    if (begins_item(s) && (clause == NAMES || clause == DEFINITIONS)) {
        return true;
    }
    if ((s->last == KEYWORD && is_before_name(s->keyword)) ||
        (s->last == COMMA && clause == TABLES)) {
        return next != '(' && !(after && (is_keyword(after, "NOT") || is_keyword(after, "EXISTS") ||
                                          is_keyword(after, "INTO") || is_keyword(after, "TABLE") ||
                                          is_keyword(after, "TO")));
    }
    bool is_frame = after && is_keyword(after, "BETWEEN") &&
                    (is_keyword(keyword, "ROWS") || is_keyword(keyword, "RANGE") ||
                     is_keyword(keyword, "GROUPS"));
    return wants_operand(s) && !is_frame &&
           (!next || strchr("=<>!+-*/%|,);.&", next) || (after && is_one_of(after, followers)));
}

typedef enum { A_NAME, AN_ALIAS, AN_ITEM, A_VALUE } position;

static position word_position(scanner *s, const unsigned char *end)
{
    unsigned char next = next_character(s, end);
    clause_kind clause = clause_of(s);
    bool is_refused = s->kind == QP_TEXT_UNKNOWN_NAMES; /* a.b may be a value without quotes */
    if (s->last == DOT) {
        return !is_refused || s->dot_follows_name ? A_NAME : A_VALUE;
    }
    if ((next == '.' && !is_refused) || next == '(') {
        return A_NAME;
    }
    if (s->last == KEYWORD) {
        if (is_keyword(s->keyword, "AS")) {
            return AN_ALIAS;
        }
        if (is_keyword(s->keyword, "BY")) {
            return is_keyword(s->keyword_before, "INDEXED") ? A_NAME : AN_ITEM;
        }
        bool assigns = is_keyword(s->keyword, "SET") && next == '=';
        return assigns || is_before_name(s->keyword) ? A_NAME : A_VALUE;
    }
    if (begins_item(s) && (clause == NAMES || clause == DEFINITIONS)) {
        return A_NAME;
    }
    if (s->last == COMMA && clause == TABLES) {
        return A_NAME;
    }
    if (s->last == COMMA && clause == ASSIGNMENTS && next == '=') {
        return A_NAME;
    }
    if (s->last == COMMA && clause == ORDER) {
        return AN_ITEM;
    }
    return after_operand(s) && !(is_refused && s->last == LITERAL) ? AN_ALIAS : A_VALUE;
}

static void append_word(qp_word *list, int *count, const unsigned char *text, size_t length)
{
    if (*count < QP_WORDS_KEPT) {
        list[(*count)++] = (qp_word){(const char *)text, length};
    }
}

/* Returns whether the word here is the name of a table or of the table's database. */
static bool is_table_name(const scanner *s)
{
    static const char *const words[] = {"FROM", "JOIN", "INTO", "UPDATE", NULL};
    return (s->last == KEYWORD && is_one_of(s->keyword, words)) || s->last == DOT ||
           (s->last == COMMA && clause_of(s) == TABLES);
}

static void add_name(scanner *s, const unsigned char *text, size_t length)
{
    qp_word_set_add(&s->found->names, qp_word_hash((const char *)text, length));
    if (is_table_name(s)) {
        append_word(s->found->tables, &s->found->table_count, text, length);
    }
}

static void collect_quoted(scanner *s, const unsigned char *text, size_t length, position where)
{
    uint64_t hash = qp_word_hash((const char *)text, length);
    if (where == A_NAME) {
        add_name(s, text, length);
    } else if (where == AN_ALIAS) {
        qp_word_set_add(&s->found->aliases, hash);
    } else if (where == A_VALUE) {
        qp_word_set_add(&s->found->values, hash);
    }
    if (where != A_NAME && where != AN_ALIAS) {
        append_word(s->found->hidden, &s->found->hidden_count, text, length);
    }
}

/* Returns whether words here are values: the file and key of ATTACH, or the file of VACUUM INTO. */
static bool takes_words_for_values(const scanner *s)
{
    return (is_keyword(s->verb, "ATTACH") && !is_keyword(s->keyword, "AS")) ||
           (is_keyword(s->verb, "VACUUM") && is_keyword(s->keyword, "INTO"));
}

bool qp_quoted_is_name(scanner *s, const unsigned char *text, size_t length, char quote,
                       const unsigned char *end)
{
    position where =
        takes_words_for_values(s) ? A_VALUE
        : (quote == '[' && s->kind != QP_TEXT_UNKNOWN_NAMES) ||
                (s->dialect == QP_STANDARD_SQL && s->kind == QP_TEXT_SQL && quote == '"')
            ? A_NAME
            : word_position(s, end);
    if (!s->words) {
        collect_quoted(s, text, length, where);
        return true;
    }
    uint64_t hash = qp_word_hash((const char *)text, length);
    if (s->kind == QP_TEXT_NO_SQL) {
        return false;
    }
    const qp_sql_words *words = s->words;
    /* A refused text has the same form, no matter which texts were accepted before. */
    bool is_column = s->kind != QP_TEXT_UNKNOWN_NAMES && qp_column_is_known(words, hash);
    bool is_known = qp_word_set_has(&words->names, hash) || is_column;
    /* Also hide an alias that is a value elsewhere in the text. */
    bool is_alias =
        qp_word_set_has(&words->aliases, hash) && !qp_word_set_has(&words->values, hash);
    return where == A_NAME || is_known || (where != A_VALUE && is_alias);
}

bool qp_word_is_shown(scanner *s, const unsigned char *text, size_t length)
{
    if (takes_words_for_values(s)) {
        return false;
    }
    if (!s->words) {
        add_name(s, text, length);
        return true;
    }
    return s->kind == QP_TEXT_SQL ||
           (s->kind == QP_TEXT_UNKNOWN_NAMES && word_position(s, text + length) != A_VALUE);
}

void qp_update_clause_after_keyword(scanner *s, const char *keyword)
{
    static const char *const opening[] = {"INTO", "REFERENCES", "USING", "CONFLICT", NULL};
    static const char *const defining[] = {"KEY", "UNIQUE", NULL};
    static const char *const passing[] = {"IF",      "NOT",   "EXISTS", "OR",   "IGNORE",
                                          "ABORT",   "FAIL",  "AS",     "DESC", "ASC",
                                          "COLLATE", "NULLS", "FIRST",  "LAST", NULL};
    static const char *const joining[] = {"JOIN",  "LEFT",  "RIGHT",   "FULL",    "INNER",
                                          "OUTER", "CROSS", "NATURAL", "INDEXED", NULL};
    bool creates = is_keyword(s->verb, "CREATE");
    bool defines = creates || is_keyword(s->verb, "ALTER");
    bool on_index = creates && is_keyword(keyword, "ON") &&
                    (is_keyword(s->keyword, "INDEX") || is_keyword(s->keyword, "EXISTS"));
    s->opens = is_one_of(keyword, opening) || on_index            ? NAMES
               : defines && is_one_of(keyword, defining)          ? NAMES
               : creates && is_keyword(keyword, "TABLE")          ? DEFINITIONS
               : is_one_of(keyword, passing) && s->opens != SIZES ? s->opens
                                                                  : EXPRESSIONS;
    if (s->unfolded || is_one_of(keyword, passing) || is_one_of(keyword, joining)) {
        return;
    }
    clause_kind *clause = &s->scopes[s->depth].clause;
    if (*clause == DEFINITIONS) {
        return;
    }
    bool by = is_keyword(keyword, "BY") && !is_keyword(s->keyword, "INDEXED");
    *clause = is_keyword(keyword, "FROM")  ? TABLES
              : is_keyword(keyword, "SET") ? ASSIGNMENTS
              : by                         ? ORDER
              : is_keyword(keyword, "BY")  ? *clause
                                           : EXPRESSIONS;
}

void qp_update_clause_after_name(scanner *s)
{
    /* In a definition, a parenthesis after the column's name and type contains the sizes of the
     * type. */
    if (clause_of(s) == DEFINITIONS && s->opens == EXPRESSIONS) {
        s->opens = SIZES;
    }
}

clause_kind qp_clause_in_parenthesis(const scanner *s)
{
    bool after_name = s->last == WORD || s->last == QUOTED;
    static const char *const direct[] = {"USING", "CONFLICT", "KEY", "UNIQUE", NULL};
    bool is_direct = s->last == KEYWORD && is_one_of(s->keyword, direct);
    return after_name || is_direct ? s->opens : EXPRESSIONS;
}
