/* Numbered names of threads and of spans. The names are in a bounded table, whose rows begin with
 * the name. When the table is full, further names get number 1, "(other)". */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

enum { QP_NAME_OTHER = 1 };

typedef struct {
    qp_table table;
    PyObject *numbers; /* owned dict: name -> number */
} qp_names;

/* Initializes the names of a table, with a name for number 0. Returns -1 with an exception on
 * failure. */
int qp_names_start(qp_names *names, qp_table table, const char *zeroth);
void qp_names_stop(qp_names *names);

/* Returns the number of a name, and adds the name (with a new reference) if it is new. Returns 0
 * with an exception, or if the names are stopped. */
uint16_t qp_name_number(qp_names *names, PyObject *name);

/* Returns whether a name has a number. Raises nothing. */
bool qp_name_has_number(const qp_names *names, PyObject *name);

bool qp_name_is_known(const qp_names *names, uint16_t number);
