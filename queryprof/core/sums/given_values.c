#include "sums/given_values.h"

#include <string.h>

enum {
    LONGEST = 16384, /* characters of a text that is searched for literals */
    OPERATOR = 4     /* letters of LIKE and GLOB */
};

static const char WILDCARDS[] = "%*_?";

/* A part of a text that has characters of ASCII alone. */
typedef struct {
    const char *at;
    size_t length;
} part;

/* The text of a str, as far as it is ASCII; of others, and of no str, nothing. */
static part text_of(PyObject *sql)
{
    if (!sql || !PyUnicode_CheckExact(sql) || !PyUnicode_IS_COMPACT_ASCII(sql)) {
        return (part){"", 0};
    }
    return (part){(const char *)((PyASCIIObject *)sql + 1), (size_t)PyUnicode_GET_LENGTH(sql)};
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes the last word off a text; `ends` are further characters that are left out behind it. */
static part last_word(part *text, const char *ends)
{
    size_t end = text->length;
    while (end && (is_blank(text->at[end - 1]) || strchr(ends, text->at[end - 1]))) {
        end--;
    }
    size_t begin = end;
    while (begin && !is_blank(text->at[begin - 1])) {
        begin--;
    }
    text->length = begin;
    return (part){text->at + begin, end - begin};
}

static bool is_word(part word, const char *capitals)
{
    size_t length = strlen(capitals);
    for (size_t i = 0; word.length == length && i < length; i++) {
        char c = word.at[i];
        if ((c >= 'a' && c <= 'z' ? c - 32 : c) != capitals[i]) {
            return false;
        }
    }
    return word.length == length;
}

/* The number that digits at the begin of a word stand for, and behind them nothing; else -1. */
static int64_t number_of(part digits)
{
    int64_t number = 0;
    for (size_t i = 0; i < digits.length; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9' || i > 17) {
            return -1;
        }
        number = 10 * number + (digits.at[i] - '0');
    }
    return digits.length ? number : -1;
}

/* The items of a tuple or list, borrowed; NULL: it is none. */
static PyObject **items_of(PyObject *parameters, Py_ssize_t *count)
{
    bool is_sequence =
        parameters && (PyTuple_CheckExact(parameters) || PyList_CheckExact(parameters));
    *count = is_sequence ? PySequence_Fast_GET_SIZE(parameters) : 0;
    return is_sequence ? PySequence_Fast_ITEMS(parameters) : NULL;
}

/* The value that has a name among parameters, borrowed; NULL: none. */
static PyObject *named(PyObject *parameters, part name)
{
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(parameters, &at, &key, &value);) {
        part known = text_of(key);
        if (known.length == name.length && memcmp(known.at, name.at, name.length) == 0) {
            return value;
        }
    }
    return NULL;
}

/* The value that a parameter at the end of a text stands for, borrowed; NULL: it is not known. */
static PyObject *value_of(part word, PyObject *parameters)
{
    Py_ssize_t count;
    PyObject **items = items_of(parameters, &count);
    if (is_word(word, "?") || (word.length == 2 && memcmp(word.at, "%s", 2) == 0)) {
        return count ? items[count - 1] : NULL;
    }
    part name = {word.at + 1, word.length - (word.length > 0)};
    bool is_numbered = word.length > 1 && (word.at[0] == '?' || word.at[0] == '$');
    int64_t number = is_numbered ? number_of(name) : -1;
    if (number > 0) {
        return number <= count ? items[number - 1] : NULL;
    }
    if (!parameters || !PyDict_CheckExact(parameters) || word.length < 2) {
        return NULL;
    }
    if (word.length > 4 && memcmp(word.at, "%(", 2) == 0) {
        name = (part){word.at + 2, word.length - 4}; /* without ")s" */
    } else if (!strchr(":@$", word.at[0])) {
        return NULL;
    }
    return named(parameters, name);
}

int64_t qp_offset_of(PyObject *sql, PyObject *parameters)
{
    part text = text_of(sql);
    part word = last_word(&text, ";");
    part before = last_word(&text, "");
    if (!is_word(before, "OFFSET")) {
        return -1;
    }
    int64_t number = number_of(word);
    PyObject *value = number < 0 ? value_of(word, parameters) : NULL;
    if (value && PyLong_CheckExact(value)) {
        int overflow;
        long long given = PyLong_AsLongLongAndOverflow(value, &overflow);
        number = overflow ? -1 : given < 0 ? 0 : given;
    }
    return number;
}

static bool begins_open(PyObject *value)
{
    if (!PyUnicode_CheckExact(value) || PyUnicode_GET_LENGTH(value) == 0) {
        return false;
    }
    Py_UCS4 first = PyUnicode_READ_CHAR(value, 0);
    return first && first < 128 && strchr(WILDCARDS, (char)first);
}

static bool is_operator(const char *at)
{
    part word = {at, OPERATOR};
    return is_word(word, "LIKE") || is_word(word, "GLOB");
}

/* Whether a literal behind LIKE or GLOB begins with a wildcard. */
static bool has_open_literal(part text)
{
    size_t end = 0; /* of what is before, without blanks: each character is looked at once */
    for (size_t i = 0; i + 1 < text.length && i < LONGEST; i++) {
        bool begins = text.at[i] == '\'' && text.at[i + 1] && strchr("%*", text.at[i + 1]);
        if (begins && end > OPERATOR && is_operator(text.at + end - OPERATOR)) {
            return true;
        }
        end = is_blank(text.at[i]) ? end : i + 1;
    }
    return false;
}

bool qp_has_open_pattern(PyObject *sql, PyObject *parameters)
{
    Py_ssize_t count, at = 0;
    PyObject *key, *value, **items = items_of(parameters, &count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (begins_open(items[i])) {
            return true;
        }
    }
    while (parameters && PyDict_CheckExact(parameters) &&
           PyDict_Next(parameters, &at, &key, &value)) {
        if (begins_open(value)) {
            return true;
        }
    }
    return has_open_literal(text_of(sql));
}
