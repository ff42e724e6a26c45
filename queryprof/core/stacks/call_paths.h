/* Call paths (the innermost frames of the program's own code), and complete stacks of the running
 * thread.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "stacks/task_creators.h"

#include "stacks/stacks.h"

enum { QP_PATH_FRAMES_MAX = 8 };

/* Allocates the cache of paths. Returns false if out of memory. */
bool qp_call_paths_start(void);

void qp_call_paths_stop(void);

/* Clears the cache. Must be called before code objects are dropped. */
void qp_call_paths_clear(void);

/* Sets the number of frames in a call path. */
void qp_call_paths_configure(int frames);

/* Finds the call path of the thread's running frame. Returns false if the call does not come from
 * the program. */
bool qp_call_path_find(PyThreadState *tstate, uint32_t *path);

/* Notes the path of work that the running task of a loop hands over or awaits. */
void qp_call_path_note_for_task(PyThreadState *tstate, uint32_t path);

/* Returns the call path of another thread, which runs a step of a loop. If the thread runs a
 * greenlet without a line of the program, returns the path that was last noted for the task,
 * because another thread cannot see the frames of the greenlet's parents. */
uint32_t qp_call_path_sample(PyThreadState *tstate, const qp_step *step);

/* Returns the complete stack of the thread, followed by the stack of the code that submitted its
 * work. */
uint32_t qp_stack_find(PyThreadState *tstate);

/* Returns the complete stack of the thread, which submits work from this path. The stack is found
 * once for each path. */
uint32_t qp_stack_find_for_submitter(PyThreadState *tstate, uint32_t path);
