/* What the values that an execution is given say of its work: how many rows its OFFSET leaves out,
 * and whether a pattern of it begins with a wildcard, which no index can be searched by. No value
 * is kept.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t offset;    /* its OFFSET, as the power of two that is next to it, so that it tells no
                        * value; -1: it has none, or that is not known */
    bool may_be_there; /* the text has a word that the others are found by */
    bool has_open_pattern; /* LIKE or GLOB compares with what begins with a wildcard of theirs */
} qp_given_values;

/* Both are borrowed, `parameters` may be NULL. `is_sqlite`: the text is for SQLite, whose
 * parameters are written otherwise. No code of the program runs. */
qp_given_values qp_given_values_of(PyObject *sql, PyObject *parameters, bool is_sqlite);
