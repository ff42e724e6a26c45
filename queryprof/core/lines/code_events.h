/* The events of one code object, through sys.monitoring (PEP 669, Python 3.12 and later). */
#pragma once

#include <Python.h>
#include <stdbool.h>

typedef struct {
    const char *name; /* name in sys.monitoring.events */
    bool is_wanted;
    PyMethodDef callback;
} qp_code_event;

/* Makes the interpreter report the wanted events. Audit hooks of the program may run. Returns the
 * tool number; 0 without an exception if another tool uses sys.monitoring, or if a hook raised. */
int qp_code_events_add(PyObject *code, qp_code_event *events, int count);

/* Stops the events and frees the tool number, unless the program has freed it. Raises nothing. */
void qp_code_events_remove(PyObject *code, int tool, const qp_code_event *events, int count);
