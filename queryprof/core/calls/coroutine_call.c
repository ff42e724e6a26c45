#include "calls/coroutine_call.h"

#include <stdbool.h>

#include "calls/call_stack.h"
#include "calls/probe.h"
#include "runtime/allocation.h"
#include "stacks/call_paths.h"
#include "threads/threads.h"
#include "wrappers/coroutine_proxy.h"

typedef enum { WAITING, MEASURED, UNMEASURED } stage;

typedef struct {
    qp_watcher watcher;
    PyObject *probe; /* the wrapper; owned, like the next three fields */
    PyObject *receiver;
    PyObject *argument;
    PyObject *parameters;
    stage stage;
    uint32_t path;      /* call path where the coroutine was made; the coroutine may start in
                         * another place */
    uint32_t recording; /* recording in which `path` is valid */
    qp_call *call;      /* set while the stage is MEASURED; owned by the thread */
} awaited_call;

static void on_resume(qp_watcher *watcher)
{
    awaited_call *self = (awaited_call *)watcher;
    if (self->stage == WAITING) {
        const qp_probe *probe = ((qp_wrapper *)self->probe)->data;
        qp_thread *thread = qp_thread_here();
        if (thread) {
            thread->awaited_path =
                self->recording == qp_recording ? self->path : (uint32_t)QP_PATH_NONE;
        }
        self->call = qp_call_begin(probe, self->receiver, self->argument, self->parameters);
        self->stage = self->call ? MEASURED : UNMEASURED;
    } else if (self->stage == MEASURED && !qp_call_resume(self->call)) {
        self->stage = UNMEASURED;
    }
}

static void on_pause(qp_watcher *watcher)
{
    awaited_call *self = (awaited_call *)watcher;
    if (self->stage == MEASURED) {
        qp_call_pause(self->call);
    }
}

static void on_end(qp_watcher *watcher, PyObject *result)
{
    awaited_call *self = (awaited_call *)watcher;
    if (self->stage == MEASURED && qp_call_resume(self->call)) {
        qp_call_end(self->call, result);
    }
    self->stage = UNMEASURED;
}

static void free_watcher(qp_watcher *watcher)
{
    awaited_call *self = (awaited_call *)watcher;
    Py_XDECREF(self->parameters);
    Py_XDECREF(self->argument);
    Py_XDECREF(self->receiver);
    Py_DECREF(self->probe);
    qp_free(self);
}

PyObject *qp_measured_coroutine(const qp_wrapper *probe, PyObject *coroutine, PyObject *receiver,
                                PyObject *argument, PyObject *parameters)
{
    awaited_call *self = PyCoro_CheckExact(coroutine) ? qp_allocate(1, sizeof *self) : NULL;
    if (!self) {
        return coroutine;
    }
    self->watcher = (qp_watcher){on_resume, on_pause, on_end, free_watcher};
    self->probe = Py_NewRef((PyObject *)probe);
    self->receiver = Py_XNewRef(receiver);
    self->argument = Py_XNewRef(argument);
    self->parameters = Py_XNewRef(parameters);
    const qp_thread *thread = qp_thread_here();
    if (thread) {
        qp_call_path_find(thread->tstate, &self->path);
        qp_call_path_note_for_task(thread->tstate, self->path);
        self->recording = qp_recording;
    }
    return qp_coroutine_proxy((PyTypeObject *)probe->extra, coroutine, &self->watcher);
}
