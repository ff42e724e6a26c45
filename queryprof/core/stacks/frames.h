/* The Python frames that a thread runs, innermost first.
 *
 * Frames are read directly from the interpreter's own records if their layout is known (CPython
 * 3.11 to 3.15), because the public functions make an object for every frame without one. For a
 * query issued from a helper function, that costs more than the rest of a probe. Both ways are
 * compared when recording starts. If they differ, or if the layout is unknown, the public functions
 * are used.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* A frame of the running thread. It is valid while the frame runs, and must be released by
 * qp_frame_outer or qp_frame_release. Its address identifies the frame. */
typedef void qp_frame;

/* Returns the running frame of the calling thread (owned by the caller: qp_frame_release), or NULL
 * if the thread runs no Python code. */
qp_frame *qp_frame_running(PyThreadState *tstate);

/* Returns the identity of the thread's running frame. It is valid while the frame runs, and never
 * dereferenced. */
const void *qp_frame_identity(PyThreadState *tstate);

/* Like qp_frame_identity if the identity can be read cheaply; otherwise returns NULL. */
const void *qp_frame_cheap_identity(PyThreadState *tstate);

/* Returns whether the thread now runs the frame with this identity. False while the frame waits in
 * another greenlet. */
bool qp_frame_is_running(PyThreadState *tstate, const void *identity);

/* Releases a frame and returns its caller, or NULL. */
qp_frame *qp_frame_outer(qp_frame *frame);

/* Releases a frame; NULL is ignored. */
void qp_frame_release(qp_frame *frame);

/* Returns the code of a frame (borrowed from the frame). */
PyCodeObject *qp_frame_code(qp_frame *frame);

/* Returns the globals in which the frame's code runs (borrowed from the frame); may be NULL. */
PyObject *qp_frame_globals(qp_frame *frame);

/* The instruction of a frame that a Python compiler (Nuitka) made. The code object of such a frame
 * contains no instructions, and its line number changes in place. */
enum { QP_NO_INSTRUCTION = -2 };

/* Returns the byte offset of the running instruction, as PyFrame_GetLasti does, or
 * QP_NO_INSTRUCTION. */
int qp_frame_instruction(qp_frame *frame);

/* A trail: the positions of the thread's innermost frames, combined into one number. A trail is
 * extended outwards. Its pointers are not dereferenced after the call in which it was made. */
typedef struct {
    uint64_t identity; /* 0 if frames cannot be compared cheaply */
    const void *next;  /* the next frame to add; NULL at the end of the stack */
} qp_frame_trail;

/* Returns a trail without frames. Trails with a different `context` are different. */
qp_frame_trail qp_frame_trail_begin(PyThreadState *tstate, uint32_t context);

/* Adds this many frames to a trail. The end of the stack counts as a frame. */
void qp_frame_trail_extend(qp_frame_trail *trail, int frames);

/* Returns the number of frames in a trail that ends with `last` (NULL: the end of the stack). */
int qp_frame_trail_length(PyThreadState *tstate, const qp_frame *last);

/* Chooses how frames are read, by comparing both ways on the running thread. */
void qp_frames_choose_reading(PyThreadState *tstate);

/* Forces the use of the public functions, for tests. */
void qp_frames_use_public(void);

/* Returns whether frames are read from the interpreter's own records. */
bool qp_frames_are_direct(void);
