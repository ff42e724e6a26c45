/* The types that the module makes. */
#pragma once

#include <Python.h>

typedef struct {
    PyTypeObject *wrapper_type; /* owned, as all of them */
    PyTypeObject *coroutine_proxy_type;
    PyTypeObject *handoff_type;
} qp_module_state;
