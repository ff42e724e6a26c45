#include "sql/normal_form_writer.h"

#include <stdbool.h>
#include <string.h>

#include "sql/positions.h"

static bool needs_space(token_kind last, token_kind next)
{
    if (last == NOTHING || last == OPEN || last == DOT) {
        return false;
    }
    if (next == COMMA || next == SEMICOLON || next == CLOSE || next == DOT) {
        return false;
    }
    return !(next == OPEN && (last == WORD || last == QUOTED));
}

void qp_put_token(scanner *s, token_kind kind, const char *text, size_t length)
{
    size_t space = needs_space(s->last, kind);
    if (s->full || s->length + space + length > QP_STATEMENT_BYTES) {
        s->full = true;
        return;
    }
    if (space) {
        s->out[s->length++] = ' ';
    }
    for (int depth = s->depth; depth >= 0 && !s->scopes[depth].item_open; depth--) {
        s->scopes[depth].item_open = true;
        s->scopes[depth].item_start = s->length;
    }
    memcpy(s->out + s->length, text, length);
    s->length += length;
    if (kind == DOT) {
        s->dot_follows_name = s->last == WORD || s->last == QUOTED;
    }
    s->last = kind;
    s->last_is_in = false;
    if (kind == WORD || kind == QUOTED) {
        qp_update_clause_after_name(s);
    } else if (kind != KEYWORD && kind != DOT) {
        s->opens = EXPRESSIONS;
    }
}

static size_t skip_parameter_name(const char *at, size_t length)
{
    size_t n = 1;
    if (*at == '%' && length > 1 && at[1] == '(') { /* %(name)s */
        const char *close = memchr(at, ')', length);
        n = close ? (size_t)(close - at) + 1 : n;
    }
    while (n < length && (is_word((unsigned char)at[n]) || (at[n] == ':' && n + 1 < length))) {
        n++;
    }
    return n;
}

/* Returns whether two items of a list are equal, apart from the names of their parameters. */
static bool are_equal_items(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t i = 0, j = 0;
    char quote = 0;
    while (i < a_length && j < b_length) {
        bool both = !quote && strchr("?:@$%", a[i]) && a[i] && strchr("?:@$%", b[j]) && b[j];
        if (both) {
            i += skip_parameter_name(a + i, a_length - i);
            j += skip_parameter_name(b + j, b_length - j);
            continue;
        }
        if (a[i] != b[j]) {
            return false;
        }
        if (quote) {
            quote = a[i] == quote ? 0 : quote;
        } else if (a[i] == '"' || a[i] == '`') {
            quote = a[i];
        } else if (a[i] == '[') {
            quote = ']';
        }
        i++;
        j++;
    }
    return i == a_length && j == b_length;
}

void qp_end_list_item(scanner *s, scope *list)
{
    if (!list->item_open || s->full) {
        return;
    }
    list->item_open = false;
    if (list->has_previous &&
        are_equal_items(s->out + list->previous_start, list->previous_end - list->previous_start,
                        s->out + list->item_start, s->length - list->item_start)) {
        s->length = list->previous_end;
        s->last = list->previous_last;
        return;
    }
    list->has_previous = true;
    list->previous_start = list->item_start;
    list->previous_end = s->length;
    list->previous_last = s->last;
}

void qp_open_scope(scanner *s, scope_kind kind)
{
    if (s->unfolded || s->depth + 1 >= SCOPES) {
        s->unfolded++;
        return;
    }
    s->scopes[++s->depth] = (scope){.kind = kind};
}

void qp_close_values_list(scanner *s)
{
    while (!s->unfolded && s->scopes[s->depth].kind == VALUES) {
        qp_end_list_item(s, &s->scopes[s->depth]);
        s->depth--;
    }
}

void qp_put_open_parenthesis(scanner *s)
{
    /* Read before qp_put_token() clears it. */
    bool in_list = s->last_is_in;
    clause_kind clause = qp_clause_in_parenthesis(s);
    qp_put_token(s, OPEN, "(", 1);
    qp_open_scope(s, in_list ? IN_LIST : PARENTHESES);
    if (!s->unfolded) {
        s->scopes[s->depth].clause = clause;
    }
}

void qp_put_close_parenthesis(scanner *s)
{
    if (s->unfolded) {
        s->unfolded--;
    } else {
        qp_close_values_list(s);
        if (s->depth > 0) {
            if (s->scopes[s->depth].kind == IN_LIST) {
                qp_end_list_item(s, &s->scopes[s->depth]);
            }
            s->depth--;
        }
    }
    qp_put_token(s, CLOSE, ")", 1);
}

void qp_put_separator(scanner *s, token_kind kind, const char *text, scope_kind list)
{
    if (kind == SEMICOLON) {
        qp_close_values_list(s);
        s->verb = s->keyword = s->keyword_before = "";
        s->scopes[0].clause = EXPRESSIONS;
    }
    scope *innermost = &s->scopes[s->depth];
    bool separates =
        !s->unfolded && (innermost->kind == list || (kind == COMMA && innermost->kind == IN_LIST));
    if (separates) {
        qp_end_list_item(s, innermost);
        innermost->item_open = true; /* the separator does not start an item */
    }
    if (s->last != NOTHING && !(kind == SEMICOLON && s->last == SEMICOLON)) {
        qp_put_token(s, kind, text, 1);
    }
    if (separates) {
        innermost->item_open = false;
    }
}
