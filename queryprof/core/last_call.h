/* A last call before the process ends without Python's own end: os._exit (which ends the
 * children of multiprocessing and os.fork), os.execv and os.execve (which replace the program),
 * os.kill of itself and signal.raise_signal (with which servers end after a signal).
 */
#ifndef QP_LAST_CALL_H
#define QP_LAST_CALL_H

#include <Python.h>

/* Calls `callback` with the function's name before any of them does its work; a reference is
 * taken. 0, or -1 with an exception. */
int qp_last_call_watch(PyObject *callback);

/* Puts the functions back. */
void qp_last_call_unwatch(void);

#endif
