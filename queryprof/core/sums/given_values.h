/* Facts about an execution from its values: how many rows its OFFSET skips, and whether a pattern
 * begins with a wildcard, which no index can search. No value is kept. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t offset;    /* its OFFSET as the nearest power of two, which does not reveal the value;
                        * -1: it has no OFFSET, or it is unknown */
    bool may_be_there; /* the text has a word that the others are found by */
    bool has_open_pattern; /* LIKE or GLOB compares with a pattern that begins with a wildcard */
} qp_given_values;

/* Both are borrowed, `parameters` may be NULL. `is_sqlite`: the text is for SQLite, whose
 * parameters are written otherwise. No code of the program runs. */
qp_given_values qp_given_values_of(PyObject *sql, PyObject *parameters, bool is_sqlite);
