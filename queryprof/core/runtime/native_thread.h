/* A native thread that calls a function repeatedly, until the thread is stopped.
 *
 * The thread is started by the C API and has no Python thread state between calls of its function.
 * So the program does not see it in threading.enumerate() or _thread._count().
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

typedef struct qp_native_thread qp_native_thread;

/* Returns a thread to launch (owned by the caller until qp_native_thread_stop); NULL with an
 * exception. `work` is called without the GIL, for the first time after `interval_s`. `work`
 * returns the seconds until its next call, or a negative number to wait until the thread is woken.
 */
qp_native_thread *qp_native_thread_new(double (*work)(void *), void *argument, double interval_s);

/* Starts the thread. Returns false if the system refuses. The caller must hold the GIL. */
bool qp_native_thread_launch(qp_native_thread *self);

/* Makes the thread call `work` now, if it has been launched. */
void qp_native_thread_wake(qp_native_thread *self);

/* Stops the thread and waits for it, at most `timeout_s` seconds, without the GIL. Returns false if
 * `work` hangs; the thread and its data must then stay. Releases `self`. */
bool qp_native_thread_stop(qp_native_thread *self, double timeout_s);
