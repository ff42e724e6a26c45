/* The creator of an event loop's task. Around the task's own frames are only the loop's frames. The
 * program's line that wants the work is the line that made the task
 * (`asyncio.gather(*[books_of(author) for author in ...])`).
 *
 * A table has the call path of that line for each living task, by its address. When a task is
 * freed, asyncio's type calls tp_dealloc, which is exchanged to remove the entry.
 *
 * The table also has the call path of the last work that a task handed over or awaited. SQLAlchemy
 * makes the objects of its rows in a greenlet, and another thread that samples the task cannot see
 * the frames of the greenlet's parents.
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

/* A running step of a loop: loops/step.h. */
typedef struct qp_step qp_step;

/* Sets the function that finds the task that a step runs, or NULL. Without a step: the step of the
 * running thread's loop. The step keeps the task. */
void qp_task_creators_find_by(const void *(*running_task)(const qp_step *));

/* Watches when tasks of that type are freed, up to qp_task_creators_stop. */
void qp_task_creators_watch(PyTypeObject *type);

/* Notes the call path that made a task. Does nothing if out of memory, or if the task's type is not
 * watched. */
void qp_task_creator_note(PyObject *task, uint32_t path);

/* Notes the call path of work that the running task hands over or awaits, and the outermost code
 * object of its frames. */
void qp_task_call_note(uint32_t path, const void *outermost_code);

/* The last call path that was noted for the task of a step, if the task's frames now have another
 * outermost code object: they are a greenlet's. Else QP_PATH_NONE. NULL: it is no greenlet. */
uint32_t qp_task_path_behind(const qp_step *step, const void *outermost_code);

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
