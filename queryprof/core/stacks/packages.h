/* The package of a module, by its name. */
#pragma once

#include <Python.h>

enum { QP_PACKAGE_BYTES = 64 };

/* Copies the name of the package that a module's globals belong to: the first part of the module's
 * name, for Django the first two (django.db, and not django.template). "" if it is unknown or too
 * long. Raises nothing. */
void qp_package_of(PyObject *globals, char package[QP_PACKAGE_BYTES]);
