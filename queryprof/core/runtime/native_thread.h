/* A native thread that calls a function now and then, until it is stopped.
 *
 * It is started by the C API and needs no Python thread state between its turns, so the program
 * does not see it in threading.enumerate() or _thread._count().
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

typedef struct qp_native_thread qp_native_thread;

/* A thread to launch (owned by the caller until qp_native_thread_stop); NULL with an exception.
 * `turn` is called without the GIL, for the first time after `interval_s`; it returns the seconds
 * until its next call (negative: when it is woken). */
qp_native_thread *qp_native_thread_new(double (*turn)(void *), void *argument, double interval_s);

/* Starts the thread. Returns false if the system refuses. The caller must hold the GIL. */
bool qp_native_thread_launch(qp_native_thread *self);

/* Makes the thread run its turn now, if it has been launched. */
void qp_native_thread_wake(qp_native_thread *self);

/* Stops the thread and waits for it, at most `timeout_s` seconds, without the GIL. Returns false if
 * a turn hangs; the thread and its turns' data must then stay. Releases `self`. */
bool qp_native_thread_stop(qp_native_thread *self, double timeout_s);
