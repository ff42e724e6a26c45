/* Errors: the number of exceptions by type and key. */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "memory/tables.h"

/* Counts an exception of this type under a key. No code of the program runs. */
void qp_error_count(const qp_key *key, PyObject *exception_type);
