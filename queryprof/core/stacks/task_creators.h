/* The creator of an event loop's task. Around the task's own frames are only the loop's frames. The
 * program's line that wants the work is the line that made the task
 * (`asyncio.gather(*[books_of(author) for author in ...])`).
 *
 * A table has the call path of that line for each living task, by its address. When a task is
 * freed, asyncio's type calls tp_dealloc, which is exchanged to remove the entry.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/thread_local.h"

/* Whether any creator is known. */
extern bool qp_task_creators_known;

/* Return whether a code object is the function that runs a loop's callbacks: a task's own frames
 * are inside it. */
bool qp_task_is_boundary(const PyCodeObject *code);

/* Sets that code object; a reference is taken. */
void qp_task_boundary_is(PyCodeObject *code);

/* Sets the function that finds the task that the running thread's loop runs (an identity), or NULL.
 */
void qp_task_creators_find_by(const void *(*running_task)(void));

/* Watches when tasks of that type are freed, up to qp_task_creators_stop. */
void qp_task_creators_watch(PyTypeObject *type);

/* Notes the call path that made a task. Does nothing if out of memory, or if the task's type is not
 * watched. */
void qp_task_creator_note(PyObject *task, uint32_t path);

/* The call path of the running work's submitter, or of the running task's creator; QP_PATH_NONE:
 * unknown, or none. Never raises. */
uint32_t qp_path_behind_find(void);

static inline uint32_t qp_path_behind(void)
{
    return qp_here.submitter || qp_task_creators_known ? qp_path_behind_find() : 0;
}

/* The whole stack of the running work's submitter; of the running task's creator the call path. */
uint32_t qp_stack_behind(void);

/* Forgets all creators: their call paths belong to a recording that ends. */
void qp_task_creators_stop(void);
