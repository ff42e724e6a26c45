/* Declarations that the module's parts share. */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* Returns false with an exception while the recorder is off. */
bool qp_require_recording(void);

/* The functions that empty the recorder's tables. */
extern PyMethodDef qp_table_functions[];

/* The functions for spans, handoffs and labels. */
extern PyMethodDef qp_work_functions[];

/* The functions about event loops. */
extern PyMethodDef qp_loop_functions[];
