/* Labels: a library's description of a statement that it runs for the program, such as the
 * relationship that an object mapper loads.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* The context variable whose value is the running label, a str. NULL if no library sets labels.
 * Owned. */
extern PyObject *qp_label_variable;

/* Returns a new wrapper of `original`: while it runs, the label is the result of `describe` for the
 * same arguments. NULL with an exception. */
PyObject *qp_label_wrapper(PyObject *module, PyObject *original, PyObject *describe);

/* Returns the running label (a new reference), or NULL. Never raises. */
PyObject *qp_running_label(void);

/* Stores the running label for a statement. A statement with different labels gets the text
 * "several labels". */
void qp_label_statement(uint32_t statement);
