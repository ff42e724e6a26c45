/* Facts about an execution's values: the number of rows that its OFFSET skips, and whether a
 * pattern begins with a wildcard, for which no index helps. No value is kept. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t offset;    /* the OFFSET, rounded to the nearest power of two so that it does not
                        * reveal the value; -1: no OFFSET, or unknown */
    bool may_be_there; /* the text contains LIMIT, OFFSET or a comparison with a pattern, so that
                        * the other fields may be set */
    bool has_open_pattern; /* a LIKE, ILIKE or GLOB has a pattern that begins with a wildcard */
} qp_given_values;

/* Returns facts about the values of an execution. `sql` and `parameters` are borrowed; `parameters`
 * may be NULL. `is_sqlite`: the text is for SQLite, whose parameters have a different syntax. No
 * code of the program runs. */
qp_given_values qp_given_values_of(PyObject *sql, PyObject *parameters, bool is_sqlite);
