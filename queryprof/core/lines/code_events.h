/* The events of one code object, by sys.monitoring (PEP 669, Python 3.12 and later). */
#pragma once

#include <Python.h>
#include <stdbool.h>

typedef struct {
    const char *name; /* name in sys.monitoring.events */
    bool is_wanted;
    PyMethodDef callback;
} qp_code_event;

/* Lets the interpreter report the wanted events under an unused tool number. Audit hooks of the
 * program may run. Returns the number, or 0 without an exception: all numbers are in use, or a hook
 * raised. */
int qp_code_events_add(PyObject *code, qp_code_event *events, int count);

/* Gives the number back. The program may have freed it. Raises nothing. */
void qp_code_events_remove(PyObject *code, int tool, const qp_code_event *events, int count);
