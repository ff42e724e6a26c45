/* Looks into dicts of the program without running the program's code, whatever the keys are. */
#pragma once

#include <Python.h>

/* Returns the value (borrowed) of a name in a dict; NULL if the name is missing, or if `dict` is
 * not a dict. Searches only the first 1,000 entries. Skips keys of other types than str, because
 * their __eq__ and __hash__ belong to the program. */
PyObject *qp_dict_find(PyObject *dict, const char *name);
