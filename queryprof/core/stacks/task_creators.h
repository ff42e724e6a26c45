/* The creators of an event loop's tasks. The frames around a task's own frames belong only to the
 * loop. The program's line that caused the work is the line that made the task
 * (`asyncio.gather(*[books_of(author) for author in ...])`).
 *
 * A table maps the address of each living task to the call path of that line. tp_dealloc of
 * asyncio's type is replaced, so that the entry is removed when the task is freed.
 *
 * For each task, the table also stores the call path that last handed work to a thread or awaited
 * it. SQLAlchemy makes the objects of its rows in a greenlet, and another thread that samples the
 * task cannot see the frames of the greenlet's parents.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/thread_local.h"

/* True if any creator is known. */
extern bool qp_task_creators_known;

/* Returns whether a code object is the function that runs a loop's callbacks. A task's own frames
 * are inside that function. */
bool qp_task_is_boundary(const PyCodeObject *code);

/* Sets the code object of the function that runs a loop's callbacks. Takes a reference. */
void qp_task_set_boundary(PyCodeObject *code);

/* A running step of a loop: loops/step.h. */
typedef struct qp_step qp_step;

/* Sets the function that returns the task of a step, or NULL. If the function gets no step, it uses
 * the step of the running thread's loop. The step keeps the task alive. */
void qp_task_creators_set_finder(const void *(*running_task)(const qp_step *));

/* Watches when tasks of this type are freed, until qp_task_creators_stop. Keeps a new reference to
 * the type. */
void qp_task_creators_watch(PyTypeObject *type);

/* Notes the call path that made a task. Does nothing if out of memory, or if the task's type is not
 * watched. */
void qp_task_creator_add(PyObject *task, uint32_t path);

/* Notes the call path of work that the running task hands over or awaits, and the outermost code
 * object of its frames. */
void qp_task_note_call_path(uint32_t path, const void *outermost_code);

/* Returns the last call path noted for the task of a step, if the task now runs in a greenlet: its
 * outermost code object then differs from the noted one. Returns QP_PATH_NONE otherwise, and if
 * `outermost_code` is NULL. */
uint32_t qp_task_path_before_greenlet(const qp_step *step, const void *outermost_code);

/* Returns the call path of the running work's submitter, or of the running task's creator;
 * QP_PATH_NONE if unknown. Never raises. */
uint32_t qp_submitter_path_find(void);

static inline uint32_t qp_submitter_path(void)
{
    return qp_here.submitter || qp_task_creators_known ? qp_submitter_path_find() : 0;
}

/* Returns the complete stack of the running work's submitter, or the call path of the running
 * task's creator. */
uint32_t qp_submitter_stack(void);

/* Forgets all creators, because their call paths belong to the recording that ends. */
void qp_task_creators_stop(void);
