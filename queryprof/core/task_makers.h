/* Who made a task of an event loop, where a library's coroutine runs in it: its frames are the
 * library's and the loop's, and the program's line stands where the task was made
 * (`asyncio.gather(*[database.execute(...) for ...])`).
 *
 * The call path of that line is the value of a context variable while the task is made: the task
 * copies its context, and so do the tasks that it makes.
 */
#ifndef QP_TASK_MAKERS_H
#define QP_TASK_MAKERS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "thread_local.h"

/* The context variable; NULL until such a task is made. */
extern PyObject *qp_task_variable;

/* A new callable that stands in for `original`, which makes a task of its second argument.
 * `boundary` is the code of the function that runs a loop's callbacks: a task's own frames are
 * inside it. NULL with an exception. */
PyObject *qp_task_runner(PyObject *module, PyObject *original, PyCodeObject *boundary);

/* The call path of who handed the work to this thread, or made the task that runs; QP_PATH_NONE: it
 * is not known, or none. Never raises. */
uint32_t qp_path_behind_find(void);

static inline uint32_t qp_path_behind(void)
{
    return qp_here.origin || qp_task_variable ? qp_path_behind_find() : 0;
}

/* Whether a code object is that boundary. */
bool qp_task_is_boundary(const PyCodeObject *code);

void qp_task_makers_stop(void);

#endif
