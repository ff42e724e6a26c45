/* The package of a module, by its name. */
#pragma once

#include <Python.h>

enum { QP_PACKAGE_BYTES = 64 };

/* Copies the name of the package to which a module's globals belong: the first part of the module's
 * name, or the first two parts for Django (so that django.db and django.template differ). "" if the
 * name is unknown or too long. Raises nothing. */
void qp_package_of(PyObject *globals, char package[QP_PACKAGE_BYTES]);
