/* The flusher: calls a Python function once an interval, from a native thread. */
#ifndef QP_FLUSHER_H
#define QP_FLUSHER_H

#include <Python.h>
#include <stdbool.h>

/* Gets ready; the thread starts with the next probed call, so that a process that asks nothing has
 * none, and none starts inside os.fork (Python counts threads there, and warns). `callback` takes
 * no arguments (a reference is taken) and is muted: its queries are not recorded.
 * 0, or -1 with an exception. */
int qp_flusher_start(PyObject *callback, double every_s);

/* Whether the thread shall start with the next probed call or step of a loop. */
extern bool qp_flusher_awaited;

/* Starts the thread; with the GIL. When the system refuses, it says so on stderr, once. */
void qp_flusher_launch(void);

/* Stops the thread and waits for it, at most `timeout_s` seconds; releases the GIL meanwhile. */
void qp_flusher_stop(double timeout_s);

/* Forgets the thread, in a forked child: it is not there. */
void qp_flusher_after_fork(void);

#endif
