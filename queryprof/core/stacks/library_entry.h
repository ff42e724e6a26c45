/* The function of a library through which the program executes a statement. */
#pragma once

#include <Python.h>

/* The outermost of the frames that are of the package nearest to the driver, inside the program's
 * own innermost frame (of the innermost 250): the library's function that the program calls. Of
 * functions that are left and continued (generators, coroutines) the one inside them. Borrowed: the
 * thread runs it. NULL: the program calls the driver itself. Raises nothing.
 *
 * A package is known by the first part of its module's name; of Django by the first two: django.db,
 * not the template that is rendered around it. */
PyCodeObject *qp_library_entry(PyThreadState *tstate);
