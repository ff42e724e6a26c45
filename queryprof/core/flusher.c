#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall */
#endif
#include "flusher.h"

#include <pythread.h>
#include <stdbool.h>

#ifndef _WIN32
#include <pthread.h>
#endif
#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "thread_local.h"

typedef struct {
    PyThread_type_lock stop; /* held until the thread shall end */
    PyThread_type_lock done; /* held until it has */
    PyObject *callback;      /* owned */
    PY_TIMEOUT_T interval_us;
    bool is_running;
#ifndef _WIN32
    pthread_t thread;
    long kernel_id; /* Linux's number of the thread */
#endif
} flusher;

static flusher *present; /* owned; NULL: none */

bool qp_flusher_awaited;

static void flush(flusher *self)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    qp_here.muted = true;
    PyObject *result = PyObject_CallNoArgs(self->callback);
    if (!result) {
        PyErr_Clear(); /* the callback reports its own errors; the program's threads see none */
    }
    Py_XDECREF(result);
    PyGILState_Release(gil);
}

static void run(void *argument)
{
    flusher *self = argument;
    while (PyThread_acquire_lock_timed(self->stop, self->interval_us, 0) != PY_LOCK_ACQUIRED) {
        flush(self);
    }
    PyThread_release_lock(self->done);
}

#ifdef _WIN32
static bool start_thread(flusher *self)
{
    return PyThread_start_new_thread(run, self) != PYTHREAD_INVALID_THREAD_ID;
}

static void join_thread(flusher *Py_UNUSED(self)) {}
#else
static void *run_thread(void *self)
{
#ifdef __linux__
    ((flusher *)self)->kernel_id = syscall(SYS_gettid);
#endif
    run(self);
    return NULL;
}

static bool start_thread(flusher *self)
{
    return pthread_create(&self->thread, NULL, run_thread, self) == 0;
}

/* Python counts the threads of the system at a fork, and warns: it must be gone, not going. */
static void join_thread(flusher *self)
{
    pthread_join(self->thread, NULL);
#ifdef __linux__
    /* The kernel still counts it for some microseconds after it can be joined. */
    for (int i = 0; i < 10000 && syscall(SYS_tgkill, getpid(), self->kernel_id, 0) == 0; i++) {
        sched_yield();
    }
#endif
}
#endif

static void release(flusher *self)
{
    if (self->stop) {
        PyThread_free_lock(self->stop);
    }
    if (self->done) {
        PyThread_free_lock(self->done);
    }
    Py_XDECREF(self->callback);
    PyMem_RawFree(self);
}

int qp_flusher_start(PyObject *callback, double interval_s)
{
    if (present) {
        return 0;
    }
    flusher *self = PyMem_RawCalloc(1, sizeof *self);
    if (!self) {
        PyErr_NoMemory();
        return -1;
    }
    self->stop = PyThread_allocate_lock();
    self->done = PyThread_allocate_lock();
    self->callback = Py_NewRef(callback);
    self->interval_us = (PY_TIMEOUT_T)(interval_s * 1e6);
    if (!self->stop || !self->done) {
        release(self);
        PyErr_NoMemory();
        return -1;
    }
    present = self;
    qp_flusher_awaited = true;
    return 0;
}

void qp_flusher_launch(void)
{
    flusher *self = present;
    qp_flusher_awaited = false;
    if (!self) {
        return;
    }
    PyThread_acquire_lock(self->stop, WAIT_LOCK);
    PyThread_acquire_lock(self->done, WAIT_LOCK);
    self->is_running = start_thread(self);
    if (!self->is_running) {
        PySys_WriteStderr("queryprof: no thread can be started: the trace is written at the end\n");
    }
}

void qp_flusher_stop(double timeout_s)
{
    flusher *self = present;
    present = NULL;
    qp_flusher_awaited = false;
    if (!self) {
        return;
    }
    bool ended = true;
    if (self->is_running) {
        PyThread_release_lock(self->stop);
        PyThreadState *released = PyEval_SaveThread();
        ended = PyThread_acquire_lock_timed(self->done, (PY_TIMEOUT_T)(timeout_s * 1e6), 0) ==
                PY_LOCK_ACQUIRED;
        if (ended) {
            join_thread(self);
        }
        PyEval_RestoreThread(released);
    }
    if (ended) {
        release(self);
    } /* else a flush hangs (a dead network disk): its thread keeps what it needs */
}

void qp_flusher_after_fork(void)
{
    present = NULL; /* its locks may be held for ever: left alone */
    qp_flusher_awaited = false;
}
