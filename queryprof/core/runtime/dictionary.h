/* Looks into dicts of the program without running its code, whatever the keys are. */
#pragma once

#include <Python.h>

/* The value (borrowed) of a name in a dict; NULL if it is missing, or if this is not a dict. Keys
 * of other types than str are skipped: their __eq__ and __hash__ belong to the program. */
PyObject *qp_dict_find(PyObject *dict, const char *name);
