/* Call paths: the innermost frames of the program's own code, and whole stacks.
 *
 * Whether a code object is the program's own is
 * decided once, from its file name, and cached by the code object's address; every code object
 * seen is kept alive, so that an address means one thing.
 */
#ifndef QP_CALLPATH_H
#define QP_CALLPATH_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "code_classes.h"

enum {
    QP_PATH_NONE = 0,  /* no frame that could be named */
    QP_PATH_OTHER = 1, /* what came after a table was full */
    QP_PATH_FRAMES_MAX = 8,
    QP_STACK_NONE = 0
};

/* Allocates the tables; false without memory. */
bool qp_callpath_start(void);

/* Gives back the tables and the references to code objects. */
void qp_callpath_stop(void);

/* Sets the number of frames in a call path. */
void qp_callpath_configure(int frames);

/* The call path of the thread's running frame. Returns false when the call is not the
 * program's. */
bool qp_callpath_find(PyThreadState *tstate, uint32_t *path);

/* Whose a code object is. */
qp_code_class qp_code_kind(PyCodeObject *code);

/* The whole stack of the thread, innermost frame first; valid until the interval ends. */
uint32_t qp_stack_find(PyThreadState *tstate);

/* Forgets all stacks: their numbers are used again. */
void qp_stacks_forget(void);

/* Counts how often they were forgotten: a stack's number is valid in the same epoch alone. */
uint32_t qp_stacks_epoch(void);

/* Whether the paths and code objects should be forgotten at the next occasion. */
bool qp_callpath_nearly_full(void);

/* Forgets stacks, paths and code objects. Path numbers are never used again. */
void qp_callpath_forget(void);

/* The path number itself, or QP_PATH_OTHER when it was forgotten. */
uint32_t qp_path_checked(uint32_t path);

/* New tuples of (function, file, line, kind) frames, innermost first; NULL with an exception. */
PyObject *qp_path_frames(uint32_t path);
PyObject *qp_stack_frames(uint32_t stack);

#endif
