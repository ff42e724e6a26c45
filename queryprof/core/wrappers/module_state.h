/* The types that the module makes. */
#pragma once

#include <Python.h>

typedef struct {
    PyTypeObject *wrapper_type; /* owned, like all types here */
    PyTypeObject *coroutine_proxy_type;
    PyTypeObject *handoff_type;
} qp_module_state;
