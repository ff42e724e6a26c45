/* The Python frames that a thread runs, innermost first.
 *
 * Read directly from the interpreter's own records where their layout is known (CPython 3.11 to
 * 3.15), because the public functions make an object for every frame that has none: for a query
 * issued from a helper that costs more than the rest of a probe. Both ways are compared when
 * recording starts; elsewhere, or when they differ, the public functions are used.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* A frame of the running thread; valid while that frame runs, and to be released by qp_frame_outer
 * or qp_frame_release. Its address identifies it. */
typedef void qp_frame;

/* The thread's running frame, or NULL: it runs no Python. The thread is the calling one. */
qp_frame *qp_frame_running(PyThreadState *tstate);

/* What identifies the thread's running frame as long as it runs; never dereferenced. */
const void *qp_frame_identity(PyThreadState *tstate);

/* The same where it is cheap; otherwise NULL. */
const void *qp_frame_cheap_identity(PyThreadState *tstate);

/* Whether the frame with this identity is among those that the thread runs now: it is not while it
 * waits in another greenlet. */
bool qp_frame_is_running(PyThreadState *tstate, const void *identity);

/* Releases a frame and returns the one that called it, or NULL. */
qp_frame *qp_frame_outer(qp_frame *frame);

/* Releases a frame; NULL is ignored. */
void qp_frame_release(qp_frame *frame);

/* Borrowed from the frame. */
PyCodeObject *qp_frame_code(qp_frame *frame);

/* The globals that the frame's code runs in; borrowed from the frame, may be NULL. */
PyObject *qp_frame_globals(qp_frame *frame);

/* For a frame that a compiler of Python (Nuitka) has made: its code object has none of the
 * program's instructions, and its line number changes in place. */
enum { QP_NO_INSTRUCTION = -2 };

/* Byte offset of the running instruction, as PyFrame_GetLasti returns it; or QP_NO_INSTRUCTION. */
int qp_frame_instruction(qp_frame *frame);

/* Distinguishes the running states of frames, compared by identity alone. Both are NULL where there
 * is no further frame. */
typedef struct {
    const void *code;
    const void *position;
} qp_frame_mark;

/* Marks the thread's frames from the running one up to `last` (NULL: the outermost). Returns the
 * number of marks; 0: there is no room for them, or no cheap way to compare them later. */
int qp_frames_mark(PyThreadState *tstate, const qp_frame *last, qp_frame_mark *marks, int room);

/* Whether the thread's innermost frames are as they were marked. */
bool qp_frames_match(PyThreadState *tstate, const qp_frame_mark *marks, int count);

/* A hash of the place of a call. */
uint32_t qp_frames_hash(PyThreadState *tstate);

/* Chooses the way to read frames, by comparing both on the running thread. */
void qp_frames_start(PyThreadState *tstate);

/* Forces the public functions (for tests of that way). */
void qp_frames_use_public(void);

/* Whether frames are read from the interpreter's own records. */
bool qp_frames_are_direct(void);
