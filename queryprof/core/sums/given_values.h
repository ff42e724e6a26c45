/* What the values that an execution is given say of its work: how many rows its OFFSET leaves out,
 * and whether a pattern of it begins with a wildcard, which no index can be searched by. No value
 * is kept.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* The value of the OFFSET that a text ends with; -1: it ends with none, or its value is not known.
 * All are borrowed, `parameters` may be NULL. No code of the program runs. */
int64_t qp_offset_of(PyObject *sql, PyObject *parameters);

/* Whether a value, or a literal behind LIKE or GLOB, begins with a wildcard. The same holds
 * for its arguments. */
bool qp_has_open_pattern(PyObject *sql, PyObject *parameters);
