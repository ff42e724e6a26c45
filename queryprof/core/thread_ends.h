/* What threads used in their lives, told by themselves when they end: /proc forgets them then. */
#ifndef QP_THREAD_ENDS_H
#define QP_THREAD_ENDS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Notes what the running thread has used, under the number of its name. Needs no GIL. */
void qp_thread_end_note(uint16_t name);

/* Forgets what was noted; also in a forked child, where the holder of its lock may be gone. */
void qp_thread_ends_forget(void);

/* Whether there are any. */
bool qp_thread_ends_waiting(void);

/* Empties the notes into a new list of tuples (see _core.pyi); NULL with an exception. */
PyObject *qp_thread_ends_take(void);

#endif
