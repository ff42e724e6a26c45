/* Looking into dicts of the program: no code of it runs, whatever its keys are. */
#pragma once

#include <Python.h>

/* The value (borrowed) of a name in a dict; NULL: there is none, or it is no dict. A key that is
 * another type than str is passed over: its __eq__ and __hash__ are the program's. */
PyObject *qp_dict_find(PyObject *dict, const char *name);
