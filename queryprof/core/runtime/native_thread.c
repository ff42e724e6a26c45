#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall */
#endif
#include "runtime/native_thread.h"

#include "runtime/thread_local.h"

#include <pythread.h>
#include <stdatomic.h>

#include <pthread.h>
#include <signal.h>
#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

struct qp_native_thread {
    PyThread_type_lock wake; /* a held lock; released to wake the thread */
    PyThread_type_lock done; /* a lock that is held until the thread has ended */
    _Atomic bool ending;
    double (*work)(void *);
    void *argument;
    double interval_s; /* until the first work */
    bool is_running;
    pthread_t thread;
    long kernel_id; /* Linux's number of the thread */
};

static void run_turns(void *argument)
{
    qp_native_thread *self = argument;
    double interval_s = self->interval_s;
    for (;;) {
        PY_TIMEOUT_T interval_us = interval_s < 0 ? -1 : (PY_TIMEOUT_T)(interval_s * 1e6);
        PyThread_acquire_lock_timed(self->wake, interval_us, 0);
        if (atomic_load(&self->ending)) {
            break;
        }
        interval_s = self->work(self->argument);
    }
    PyThread_release_lock(self->done);
}

/* Gives the thread its own, empty table of files (close_range(2), Linux 5.9), so that the numbers
 * of the thread's files never collide with the program's. Returns false if that is impossible. */
static bool unshare_files(void)
{
#ifdef __linux__
    enum {
        CLOSE_RANGE = 436,
        UNSHARE = 1 << 1
    }; /* the same on all architectures; CLOSE_RANGE_UNSHARE */
    return syscall(CLOSE_RANGE, 0, ~0U, UNSHARE) == 0;
#else
    return false;
#endif
}

static void *run_thread(void *self)
{
#ifdef __linux__
    ((qp_native_thread *)self)->kernel_id = syscall(SYS_gettid);
    qp_here.has_own_files = unshare_files();
    pthread_setname_np(pthread_self(), "queryprof"); /* the thread's usage does not belong to the
                                                      * program */
#endif
    run_turns(self);
    return NULL;
}

/* The thread blocks all signals. If the thread took a signal, the program's main thread would not
 * wake up, and only the main thread runs Python's handlers. */
static bool start_thread(qp_native_thread *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&self->thread, NULL, run_thread, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* At a fork, Python counts the system's threads and warns. So the thread must have ended
 * completely. */
static void join_thread(qp_native_thread *self)
{
    pthread_join(self->thread, NULL);
#ifdef __linux__
    /* The kernel still counts the thread for some microseconds after it can be joined. */
    for (int i = 0; i < 10000 && syscall(SYS_tgkill, getpid(), self->kernel_id, 0) == 0; i++) {
        if (i < 100) {
            sched_yield();
        } else {
            usleep(100); /* other threads have the CPUs */
        }
    }
#endif
}

static void free_thread(qp_native_thread *self)
{
    if (self->wake) {
        PyThread_free_lock(self->wake);
    }
    if (self->done) {
        PyThread_free_lock(self->done);
    }
    PyMem_RawFree(self);
}

qp_native_thread *qp_native_thread_new(double (*work)(void *), void *argument, double interval_s)
{
    qp_native_thread *self = PyMem_RawCalloc(1, sizeof *self);
    if (self) {
        self->wake = PyThread_allocate_lock();
        self->done = PyThread_allocate_lock();
        self->work = work;
        self->argument = argument;
        self->interval_s = interval_s;
        if (self->wake && self->done) {
            return self;
        }
        free_thread(self);
    }
    PyErr_NoMemory();
    return NULL;
}

bool qp_native_thread_launch(qp_native_thread *self)
{
    PyThread_acquire_lock(self->wake, WAIT_LOCK);
    PyThread_acquire_lock(self->done, WAIT_LOCK);
    self->is_running = start_thread(self);
    return self->is_running;
}

void qp_native_thread_wake(qp_native_thread *self)
{
    if (self->is_running) {
        PyThread_release_lock(self->wake);
    }
}

bool qp_native_thread_stop(qp_native_thread *self, double timeout_s)
{
    bool ended = true;
    if (self->is_running) {
        atomic_store(&self->ending, true);
        PyThread_release_lock(self->wake);
        PyThreadState *released = PyEval_SaveThread();
        ended = PyThread_acquire_lock_timed(self->done, (PY_TIMEOUT_T)(timeout_s * 1e6), 0) ==
                PY_LOCK_ACQUIRED;
        if (ended) {
            join_thread(self);
        }
        PyEval_RestoreThread(released);
    }
    if (ended) {
        free_thread(self);
    } /* otherwise the thread still needs this memory */
    return ended;
}
