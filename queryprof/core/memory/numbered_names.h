/* Names with numbers: of threads and of spans. A bounded table, whose rows begin with their names;
 * number 1 is "(other)", for all names after the table is full. */
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

/* Makes the names of a table of rows, with the name of number 0; -1 with an exception. */
int qp_names_start(qp_names *names, qp_table table, const char *zeroth);
void qp_names_stop(qp_names *names);

/* The number of a name (a reference is taken when it is new); 0 with an exception, or where the
 * names are stopped. */
uint16_t qp_name_number(qp_names *names, PyObject *name);

/* Returns whether a name has a number. Raises nothing. */
bool qp_name_has(const qp_names *names, PyObject *name);

bool qp_name_is_known(const qp_names *names, uint16_t number);
