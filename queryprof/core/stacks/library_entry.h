/* The function of a library through which the program executes a statement. */
#pragma once

#include <Python.h>

/* Returns the library's function that the program calls: the outermost frame of the package nearest
 * to the driver, inside the program's innermost frame (among the innermost 250). If that frame is a
 * generator or coroutine, which pauses, returns the frame inside it. The result is borrowed: the
 * thread runs it. NULL if the program calls the driver itself. Raises nothing. */
PyCodeObject *qp_library_entry(PyThreadState *tstate);
