/* Event loops: the sums for each kind of loop and thread name, and the running loops.
 *
 * A qp_running_loop is one loop in one thread, from its start until it stops. All loops of its kind
 * in threads of that name share its sums. So a program that starts ten thousand loops, one after
 * another, needs no more room than a program that starts one.
 */
#pragma once

#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/histogram.h"
#include "runtime/compiler.h"
#include "runtime/thread_local.h"
#include "threads/threads.h"

enum { QP_LANES = 256 };

struct qp_step;

typedef struct qp_running_loop {
    /* For the watchdog, which reads without the GIL: when the step in progress began, or when the
     * next heartbeat is due where steps cannot be seen (0: neither), and the number of that
     * step. */
    _Atomic uint64_t started_ticks;
    _Atomic uint64_t step_number;
    /* From the watchdog: the thread's CPU time (qp_cpu_wanted_ns) when it first saw the step of
     * this number. */
    _Atomic uint64_t seen_number;
    uint64_t seen_ticks;
    int64_t seen_cpu_ns;
    int64_t seen_queued_ns;    /* ready to run, by the watchdog's first look (-1: unknown), ... */
    _Atomic int64_t queued_ns; /* ... and between that and its last one */
    uint64_t watched_number;   /* the watchdog's own: the step that it watches, ... */
    int64_t watched_ns;        /* ... and after which duration it samples that */
    /* The fields below are protected by the GIL. */
    bool in_use;
    bool has_clock; /* its time is the monotonic clock's: its lag can be computed */
    uint32_t recording;
    long kernel_id; /* the system's number of the thread; 0 if unknown */
    qp_thread *thread;
    qp_loop *loop;
    PyObject *object;     /* owned: the running loop, identity only */
    PyObject *ready;      /* owned deque of the callbacks that are ready, or NULL */
    PyObject *timers;     /* owned list of the timers, or NULL */
    struct qp_step *step; /* step in progress, or NULL; owned by its caller */
    struct qp_running_loop *outer;
    int64_t gc_ticks; /* spent in garbage collections */
    uint64_t gc_started_ticks;
    uint64_t settled_ticks; /* up to when run_ticks is counted */
    uint64_t last_ticks;    /* when its last step ended */
    bool is_adopted;        /* it ran before recording began: no hook sees it stop */
    PyObject *start_beats;  /* owned: starts its heartbeat when a step ends after the first beat was
                             * due; NULL: it has started, or there is no heartbeat */
    PyObject *end_beats;    /* owned: ends it, or None; NULL if it has not started */
    uint64_t beat_due_ticks; /* when the first beat is due */
} qp_running_loop;

/* Steps from this many nanoseconds on are stalls. */
extern int64_t qp_stall_ns;

/* The loop that runs in the calling thread, or NULL if it runs none that is recorded. */
static QP_INLINE qp_running_loop *qp_running_loop_here(void)
{
    qp_thread *thread = qp_here.thread;
    qp_running_loop *running_loop = thread ? thread->running_loop : NULL;
    return running_loop && !qp_here.muted && running_loop->recording == qp_recording &&
                   thread->tstate == PyThreadState_Get()
               ? running_loop
               : NULL;
}

/* Registers a loop that starts in the running thread; NULL if it is not recorded. `kind` is a str.
 * Never raises. */
qp_running_loop *qp_running_loop_enter(PyObject *kind, PyObject *loop, bool has_steps);

/* The loop has stopped; NULL is ignored. Keeps the exception that is set. */
void qp_running_loop_leave(qp_running_loop *running_loop);

/* All running loops that were ever registered; they are never freed. The caller need not hold the
 * GIL. */
qp_running_loop *qp_running_loops(int *count);

/* Clears an exception that our own Python code has raised: the program's code must still run. False
 * if it is not ours (an interrupt), and stays set. */
bool qp_own_error_dropped(void);

/* Starts the heartbeat of a loop whose step has ended, once it is due: most loops that a program
 * starts end before. False with an exception, as above. */
bool qp_running_loop_start_beats(qp_running_loop *running_loop, uint64_t busy_since_ticks);

/* Adds a timer's or a heartbeat's lag to the sums. */
void qp_loop_timer(qp_loop *loop, int64_t lag_ns);
void qp_loop_beat(qp_loop *loop, int64_t lag_ns);

/* The row of a loop. */
uint32_t qp_loop_number(const qp_loop *loop);

/* Adds the running loops' run time up to now. */
void qp_loops_flush(void);

/* Clears the sums; the loops stay. */
void qp_loops_clear(void);

/* In a forked child: stops recording the parent's running loops, because asyncio continues none
 * there. */
void qp_loops_after_fork(void);
