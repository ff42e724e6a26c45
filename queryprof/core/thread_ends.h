/* What threads used in their lives, told by themselves when they end: /proc forgets them then. */
#ifndef QP_THREAD_ENDS_H
#define QP_THREAD_ENDS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Notes what the running thread has used, under the number of its name in a recording. Needs no
 * GIL. */
void qp_thread_end_note(uint16_t name, uint32_t recording);

/* In a forked child: forgets what was noted, and makes a new lock. */
void qp_thread_ends_after_fork(void);

/* Whether there are any. */
bool qp_thread_ends_waiting(void);

/* Empties the notes into a new list of tuples (see _core.pyi); NULL with an exception. */
PyObject *qp_thread_ends_take(void);

#endif
