#include "sums/given_values.h"

#include <string.h>

enum {
    MAX_CHARACTERS = 16384, /* maximum length of a text that is read, in characters */
    LAST = 4,               /* number of tokens at the end of the text that are kept, to find an
                             * OFFSET */
    MAX_DIGITS = 18,        /* maximum digits of a number */
    MAX_SHIFT = 32 /* an OFFSET counts as at most 2 to the power of this, so that sums stay in
                    * 64 bits */
};

typedef enum { NOTHING, WORD, NUMBER, PARAMETER, TEXT, SIGN } kind;

typedef struct {
    kind kind;
    Py_ssize_t begin, end; /* offsets in the text, without the quotes of a literal */
    Py_ssize_t index;      /* position of the parameter in a sequence, from 1; 0 if it has a name */
    int depth;             /* depth of parentheses */
} token;

/* A text while it is read. Its str is borrowed. */
typedef struct {
    int width;
    const void *characters;
    Py_ssize_t length, at;
    Py_ssize_t largest; /* index of the last parameter */
    bool has_names;     /* a parameter has a name, so the indexes of other parameters are unknown */
    bool is_sqlite;
    int depth;
} text;

static Py_UCS4 character_at(const text *t, Py_ssize_t at)
{
    return at < t->length ? PyUnicode_READ(t->width, t->characters, at) : 0;
}

static bool is_digit(Py_UCS4 c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_character(Py_UCS4 c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c > 127;
}

static Py_ssize_t end_of_word(const text *t, Py_ssize_t at)
{
    while (is_word_character(character_at(t, at))) {
        at++;
    }
    return at;
}

/* Returns the end of a quoted text or name: its closing quote. Quotes inside are doubled. */
static Py_ssize_t end_of_quotes(const text *t, Py_ssize_t at, Py_UCS4 quote)
{
    for (; at < t->length; at++) {
        if (character_at(t, at) != quote) {
            continue;
        }
        if (quote == ']' || character_at(t, at + 1) != quote) {
            return at;
        }
        at++;
    }
    return t->length;
}

/* Skips blanks and comments. */
static void skip_blanks(text *t)
{
    for (; t->at < t->length; t->at++) {
        Py_UCS4 c = character_at(t, t->at), next = character_at(t, t->at + 1);
        if (c == '-' && next == '-') {
            while (t->at < t->length && character_at(t, t->at) != '\n') {
                t->at++;
            }
        } else if (c == '/' && next == '*') {
            t->at += 2;
            while (t->at < t->length &&
                   !(character_at(t, t->at) == '*' && character_at(t, t->at + 1) == '/')) {
                t->at++;
            }
            t->at++;
        } else if (c != ' ' && !(c >= '\t' && c <= '\r')) {
            return;
        }
    }
}

/* Reads a parameter of a sequence: the parameter with this number, or the next parameter if
 * `number` is 0. */
static token positional_parameter(text *t, Py_ssize_t end, Py_ssize_t number)
{
    Py_ssize_t index = number ? number : t->largest + 1;
    t->largest = index > t->largest ? index : t->largest;
    token found = {PARAMETER, t->at, end, t->has_names ? -1 : index, t->depth};
    t->at = end;
    return found;
}

static token named_parameter(text *t, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t after)
{
    t->has_names = true;
    t->at = after;
    return (token){PARAMETER, begin, end, 0, t->depth};
}

/* Returns the number in a run of digits; -1 if there are no digits, or too many. */
static int64_t number_of_digits(const text *t, Py_ssize_t begin, Py_ssize_t end)
{
    int64_t number = 0;
    for (Py_ssize_t at = begin; at < end; at++) {
        if (!is_digit(character_at(t, at)) || at - begin >= MAX_DIGITS) {
            return -1;
        }
        number = 10 * number + (int64_t)(character_at(t, at) - '0');
    }
    return end > begin ? number : -1;
}

/* Returns the parameter that begins here, or another kind of token if no parameter begins here. */
static token read_parameter(text *t)
{
    Py_UCS4 c = character_at(t, t->at), next = character_at(t, t->at + 1);
    Py_ssize_t end = end_of_word(t, t->at + 1);
    int64_t number = number_of_digits(t, t->at + 1, end);
    bool is_small = number > 0 && number < MAX_CHARACTERS;
    if (c == '?' && (end == t->at + 1 || is_small)) {
        return positional_parameter(t, end, is_small ? (Py_ssize_t)number : 0);
    }
    if (c == '$' && is_small && !t->is_sqlite) {
        return positional_parameter(t, end, (Py_ssize_t)number);
    }
    if ((c == ':' || c == '@' || c == '$') && end > t->at + 1) {
        return named_parameter(t, t->at + 1, end, end);
    }
    if (c == '%' && !t->is_sqlite && (next == 's' || next == 'b' || next == 't')) {
        return positional_parameter(t, t->at + 2, 0);
    }
    if (c == '%' && !t->is_sqlite && next == '(') {
        end = end_of_word(t, t->at + 2);
        return named_parameter(t, t->at + 2, end, end + 2); /* ")s" */
    }
    return (token){.kind = NOTHING};
}

/* Returns the next token; NOTHING at the end of the text. */
static token next_token(text *t)
{
    skip_blanks(t);
    Py_ssize_t begin = t->at;
    Py_UCS4 c = character_at(t, begin);
    if (begin >= t->length) {
        return (token){.kind = NOTHING};
    }
    if (c == '\'' || c == '"' || c == '`' || c == '[') {
        Py_ssize_t end = end_of_quotes(t, begin + 1, c == '[' ? ']' : c);
        t->at = end + 1;
        return (token){c == '\'' ? TEXT : WORD, begin + 1, end, 0, t->depth};
    }
    if (is_word_character(c)) {
        t->at = end_of_word(t, begin);
        return (token){is_digit(c) ? NUMBER : WORD, begin, t->at, 0, t->depth};
    }
    if (c == ':' && character_at(t, begin + 1) == ':') { /* PostgreSQL's cast */
        t->at += 2;
        return (token){SIGN, begin, t->at, 0, t->depth};
    }
    token found = read_parameter(t);
    if (found.kind == NOTHING) {
        t->depth -= c == ')' && t->depth;
        found = (token){SIGN, begin, ++t->at, 0, t->depth};
        t->depth += c == '(';
    }
    return found;
}

static bool is_word(const text *t, token one, const char *capitals)
{
    Py_ssize_t length = (Py_ssize_t)strlen(capitals);
    if (one.kind != WORD || one.end - one.begin != length) {
        return false;
    }
    for (Py_ssize_t i = 0; i < length; i++) {
        Py_UCS4 c = character_at(t, one.begin + i);
        if ((c >= 'a' && c <= 'z' ? c - 32 : c) != (Py_UCS4)capitals[i]) {
            return false;
        }
    }
    return true;
}

static bool is_sign(const text *t, token one, Py_UCS4 sign)
{
    return one.kind == SIGN && one.end - one.begin == 1 && character_at(t, one.begin) == sign;
}

static bool parameter_has_name(const text *t, token one, PyObject *name)
{
    if (!PyUnicode_CheckExact(name) || PyUnicode_GET_LENGTH(name) != one.end - one.begin) {
        return false;
    }
    for (Py_ssize_t i = 0; i < one.end - one.begin; i++) {
        if (PyUnicode_READ_CHAR(name, i) != character_at(t, one.begin + i)) {
            return false;
        }
    }
    return true;
}

/* Returns the value of a parameter (borrowed); NULL if it is unknown. */
static PyObject *parameter_value(const text *t, token one, PyObject *parameters)
{
    bool is_sequence =
        parameters && (PyTuple_CheckExact(parameters) || PyList_CheckExact(parameters));
    if (is_sequence) {
        bool is_there = one.index > 0 && one.index <= PySequence_Fast_GET_SIZE(parameters);
        return is_there ? PySequence_Fast_GET_ITEM(parameters, one.index - 1) : NULL;
    }
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (parameters && !one.index && PyDict_CheckExact(parameters) &&
           PyDict_Next(parameters, &at, &key, &value)) {
        if (parameter_has_name(t, one, key)) {
            return value;
        }
    }
    return NULL;
}

/* Returns the value of a number or parameter, rounded to the nearest power of two; 0 for 0; -1 if
 * unknown. */
static int64_t rounded_to_power_of_two(const text *t, token one, PyObject *parameters)
{
    int64_t number = one.kind == NUMBER ? number_of_digits(t, one.begin, one.end) : -1;
    PyObject *value = one.kind == PARAMETER ? parameter_value(t, one, parameters) : NULL;
    if (value && PyLong_CheckExact(value)) {
        int overflow;
        long long given = PyLong_AsLongLongAndOverflow(value, &overflow);
        number = overflow > 0 ? INT64_MAX : given < 0 ? 0 : given;
    }
    if (number <= 0) {
        return number;
    }
    int shift = 0;
    while (shift < MAX_SHIFT && number >> (shift + 1)) {
        shift++;
    }
    int64_t power = (int64_t)1 << shift;
    return shift < MAX_SHIFT && number - power >= (power + 1) / 2 ? 2 * power : power;
}

/* Returns the OFFSET of a text from its last tokens, in reverse order: OFFSET n; LIMIT n, n; OFFSET
 * n LIMIT n (https://www.sqlite.org/lang_select.html#limitoffset). */
static int64_t query_offset(const text *t, const token last[LAST], PyObject *parameters)
{
    for (int i = 0; i < LAST; i++) {
        if (last[i].depth) {
            return -1;
        }
        if (is_word(t, last[i], "OFFSET")) {
            bool is_in_place = i == 1 || (i == 3 && is_word(t, last[1], "LIMIT"));
            return is_in_place ? rounded_to_power_of_two(t, last[i - 1], parameters) : -1;
        }
    }
    bool is_pair = is_sign(t, last[1], ',') && is_word(t, last[3], "LIMIT");
    return is_pair ? rounded_to_power_of_two(t, last[2], parameters) : -1;
}

/* Returns the wildcards of an operator's patterns; NULL if the operator does not compare with a
 * pattern. */
static const char *operator_wildcards(const text *t, token one)
{
    if (is_word(t, one, "LIKE") || is_word(t, one, "ILIKE")) {
        return "%_";
    }
    return is_word(t, one, "GLOB") ? "*?[" : NULL;
}

/* Returns whether a literal or the value of a parameter begins with a wildcard. */
static bool begins_with_wildcard(const text *t, token one, PyObject *parameters,
                                 const char *wildcards)
{
    Py_UCS4 first = one.kind == TEXT && one.end > one.begin ? character_at(t, one.begin) : 0;
    PyObject *value = one.kind == PARAMETER ? parameter_value(t, one, parameters) : NULL;
    if (value && PyUnicode_CheckExact(value) && PyUnicode_GET_LENGTH(value)) {
        first = PyUnicode_READ_CHAR(value, 0);
    }
    return first && first < 128 && strchr(wildcards, (char)first);
}

/* Returns whether a comparison ends here, so that a later text is not its pattern. */
static bool ends_comparison(const text *t, token one)
{
    return is_word(t, one, "AND") || is_word(t, one, "OR") || is_word(t, one, "THEN");
}

qp_given_values qp_given_values_of(PyObject *sql, PyObject *parameters, bool is_sqlite)
{
    qp_given_values found = {.offset = -1, .may_be_there = true};
    if (!sql || !PyUnicode_CheckExact(sql) || PyUnicode_GET_LENGTH(sql) > MAX_CHARACTERS) {
        return found;
    }
    text t = {.width = PyUnicode_KIND(sql),
              .characters = PyUnicode_DATA(sql),
              .length = PyUnicode_GET_LENGTH(sql),
              .is_sqlite = is_sqlite};
    token last[LAST] = {{.kind = NOTHING}};
    const char *wildcards = NULL;
    found.may_be_there = false;
    for (token one = next_token(&t); one.kind; one = next_token(&t)) {
        if (is_sign(&t, one, ';')) {
            continue;
        }
        if (wildcards && (one.kind == PARAMETER || one.kind == TEXT)) {
            found.has_open_pattern |= begins_with_wildcard(&t, one, parameters, wildcards);
            wildcards = NULL;
        }
        const char *wildcards_here = operator_wildcards(&t, one);
        wildcards = wildcards_here || ends_comparison(&t, one) ? wildcards_here : wildcards;
        found.may_be_there |=
            wildcards_here || is_word(&t, one, "LIMIT") || is_word(&t, one, "OFFSET");
        memmove(last + 1, last, (LAST - 1) * sizeof *last);
        last[0] = one;
    }
    found.offset = query_offset(&t, last, parameters);
    return found;
}
