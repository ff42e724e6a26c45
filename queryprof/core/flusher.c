#include "flusher.h"

#include "background.h"
#include "thread_local.h"

static qp_background *present; /* owned; NULL: none */
static PyObject *callback;     /* owned */
static double interval_s;

bool qp_flusher_awaited;

static double flush(void *function)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    qp_here.muted = true;
    PyObject *result = PyObject_CallNoArgs(function);
    if (!result) {
        PyErr_Clear(); /* the callback reports its own errors; the program's threads see none */
    }
    Py_XDECREF(result);
    PyGILState_Release(gil);
    return interval_s;
}

int qp_flusher_start(PyObject *function, double every_s)
{
    if (present) {
        return 0;
    }
    present = qp_background_new(flush, function, every_s);
    if (!present) {
        return -1;
    }
    callback = Py_NewRef(function);
    interval_s = every_s;
    qp_flusher_awaited = true;
    return 0;
}

void qp_flusher_launch(void)
{
    qp_flusher_awaited = false;
    if (present && !qp_background_launch(present)) {
        PySys_WriteStderr("queryprof: no thread can be started: the trace is written at the end\n");
    }
}

void qp_flusher_stop(double timeout_s)
{
    qp_background *stopped = present;
    PyObject *function = callback;
    present = NULL;
    callback = NULL;
    qp_flusher_awaited = false;
    if (stopped && qp_background_stop(stopped, timeout_s)) {
        Py_DECREF(function);
    } /* else a flush hangs (a dead network disk), and needs its callback */
}

void qp_flusher_after_fork(void)
{
    present = NULL; /* its locks may be held for ever: left alone */
    callback = NULL;
    qp_flusher_awaited = false;
}
