/* The creator of an event loop's task: around the task's own frames are the loop's, and the line of
 * the program that wants the work is where the task was made
 * (`asyncio.gather(*[books_of(author) for author in ...])`).
 *
 * The call path of that line is the value of a context variable while the task is made: the task
 * copies its context, and so do the tasks that it makes.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/thread_local.h"

enum { QP_TASK_PATH_BITS = 32 };

/* The context variable: its value is the number of a recording, times 2^32, and of a call path
 * there; NULL until such a task is made. */
extern PyObject *qp_task_variable;

/* Whether a code object is that of the function that runs a loop's callbacks: a task's own frames
 * are inside it. */
bool qp_task_is_boundary(const PyCodeObject *code);

/* Sets that code object; a reference is taken. */
void qp_task_boundary_is(PyCodeObject *code);

/* The call path of the running work's submitter, or of the running task's creator; QP_PATH_NONE:
 * unknown, or none. Never raises. */
uint32_t qp_path_behind_find(void);

static inline uint32_t qp_path_behind(void)
{
    return qp_here.submitter || qp_task_variable ? qp_path_behind_find() : 0;
}

/* The whole stack of the running work's submitter; of the running task's creator the call path. */
uint32_t qp_stack_behind(void);

void qp_task_creators_stop(void);
