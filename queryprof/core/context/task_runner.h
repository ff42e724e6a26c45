/* The function that makes the tasks of an event loop, called with who makes them noted (see
 * task_creators.h).
 */
#ifndef QP_CONTEXT_TASK_RUNNER_H
#define QP_CONTEXT_TASK_RUNNER_H

#include <Python.h>

/* A new callable that stands in for `original`, which makes a task of its second argument.
 * `boundary` is the code of the function that runs a loop's callbacks: a task's own frames are
 * inside it. NULL with an exception. */
PyObject *qp_task_runner(PyObject *module, PyObject *original, PyCodeObject *boundary);

#endif
