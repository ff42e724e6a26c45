/* A wrapper of the function that makes an event loop's tasks. The wrapper stores the creator of
 * each task (see task_creators.h). */
#pragma once

#include <Python.h>

/* Returns a new wrapper of `original`, a function that makes a task from its second argument.
 * `boundary` is the code of the function that runs a loop's callbacks: a task's own frames are
 * inside that function. Keeps new references to `boundary` and `task_type`. NULL with an
 * exception. */
PyObject *qp_task_creation_wrapper(PyObject *module, PyObject *original, PyCodeObject *boundary,
                                   PyTypeObject *task_type);
