/* Calls in a line that do not belong to the libraries which execute the line's statement. If the
 * developer fixes the line, the program still makes these calls. */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "stacks/packages.h"

enum { QP_LIBRARIES = 8 };

/* The packages between a line and the driver. */
typedef struct {
    char names[QP_LIBRARIES][QP_PACKAGE_BYTES];
    int count;
} qp_libraries;

/* Adds the package of a frame's globals, unless the package is known. If the list is full, replaces
 * its last package, so that the outermost package, which the line calls, is always in the list.
 * Raises nothing. */
void qp_libraries_add(qp_libraries *libraries, PyObject *globals);

/* Returns whether a call is foreign: it calls one of the program's own functions, or another
 * package. A call whose first argument is an iterator is not foreign, because such a call may make
 * the objects of a query's rows. `callable` and `argument` are borrowed. Raises nothing. */
bool qp_call_is_foreign(const qp_libraries *libraries, PyObject *callable, PyObject *argument);
