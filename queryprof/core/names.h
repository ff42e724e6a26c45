/* Names with numbers: of threads and of spans. A bounded table; the last number is "(other)". */
#ifndef QP_NAMES_H
#define QP_NAMES_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

enum { QP_NAMES = 1024 };

typedef struct {
    PyObject *numbers; /* owned dict: name -> number */
    PyObject *names;   /* owned list: names by number */
} qp_names;

/* Makes the table with the name of number 0; -1 with an exception. */
int qp_names_start(qp_names *table, const char *zeroth);
void qp_names_stop(qp_names *table);

/* The number of a name (a reference is taken when it is new); 0 with an exception, or where the
 * table is stopped. */
uint16_t qp_name_number(qp_names *table, PyObject *name);

bool qp_name_is_known(const qp_names *table, uint16_t number);

/* A new str: the name of a number; NULL with an exception. */
PyObject *qp_name_of(const qp_names *table, uint16_t number);

#endif
