/* The creator of an event loop's task: around the task's own frames are the loop's, and the line of
 * the program that wants the work is where the task was made
 * (`asyncio.gather(*[books_of(author) for author in ...])`).
 *
 * A table has the call path of that line for each task, by the addresses of the task and of its
 * coroutine. A new task at the same address replaces the entry of the task before it.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/thread_local.h"

/* Whether any creator is known. */
extern bool qp_task_creators_known;

/* Whether a code object is that of the function that runs a loop's callbacks: a task's own frames
 * are inside it. */
bool qp_task_is_boundary(const PyCodeObject *code);

/* Sets that code object; a reference is taken. */
void qp_task_boundary_is(PyCodeObject *code);

/* Notes the call path that made a task. The addresses only identify it. Does nothing without
 * memory. */
void qp_task_creator_note(const void *task, const void *coroutine, uint32_t path);

/* The call path of the running work's submitter, or of the running task's creator; QP_PATH_NONE:
 * unknown, or none. Never raises. */
uint32_t qp_path_behind_find(void);

static inline uint32_t qp_path_behind(void)
{
    return qp_here.submitter || qp_task_creators_known ? qp_path_behind_find() : 0;
}

/* The whole stack of the running work's submitter; of the running task's creator the call path. */
uint32_t qp_stack_behind(void);

/* Forgets all creators: their call paths are those of a recording that ends. */
void qp_task_creators_stop(void);
