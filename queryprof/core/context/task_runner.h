/* A wrapper of the function that makes an event loop's tasks: it stores their creator (see
 * task_creators.h).
 */
#pragma once

#include <Python.h>

/* A new wrapper of `original`, which makes a task of its second argument. `boundary` is the code of
 * the function that runs a loop's callbacks: a task's own frames are inside it. NULL with an
 * exception. */
PyObject *qp_task_runner(PyObject *module, PyObject *original, PyCodeObject *boundary,
                         PyTypeObject *task_type);
