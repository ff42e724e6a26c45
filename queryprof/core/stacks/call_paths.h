/* Call paths: the innermost frames of the program's own code; and whole stacks, of the running
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

/* Clears the cache: code objects are dropped. */
void qp_call_paths_clear(void);

/* Sets the number of frames in a call path. */
void qp_call_paths_configure(int frames);

/* The call path of the thread's running frame. Returns false when the call is not the
 * program's. */
bool qp_call_path_find(PyThreadState *tstate, uint32_t *path);

/* Notes the path of work that the running task of a loop hands over or awaits. */
void qp_call_path_note(PyThreadState *tstate, uint32_t path);

/* The call path of another thread, which runs a step of a loop. If it runs a greenlet without a
 * line of the program, the path that was last noted for the task: the frames of the greenlet's
 * parents are not visible from here. */
uint32_t qp_call_path_sample(PyThreadState *tstate, const qp_step *step);

/* The whole stack of the thread, and the stack of whoever submitted its work. */
uint32_t qp_stack_find(PyThreadState *tstate);

/* The whole stack of the thread, which submits work from this path; found once for each path. */
uint32_t qp_stack_find_submitter(PyThreadState *tstate, uint32_t path);
