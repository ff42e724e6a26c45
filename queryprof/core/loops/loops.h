/* Event loops: what is known of each kind of loop in threads of each name, and the running_loops in
 * which they run.
 *
 * A running_loop is one running loop in one thread: from when it starts until it stops. Its sums
 * are those of all loops of its kind in threads of that name, so that a program which starts ten
 * thousand loops, one after the other, needs no more room than one that starts one.
 */
#ifndef QP_LOOPS_LOOPS_H
#define QP_LOOPS_LOOPS_H

#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/histogram.h"
#include "runtime/thread_local.h"
#include "threads/threads.h"

enum { QP_LANES = 256 };

struct qp_step;

typedef struct qp_running_loop {
    /* For the watchdog, which reads without the GIL: when the step in progress began, or the next
     * heartbeat is due where steps cannot be seen (0: neither), and which step that is. */
    _Atomic uint64_t started_ticks;
    _Atomic uint64_t step_number;
    /* From the watchdog: the CPU time (qp_cpu_wanted_ns) of the thread when it first saw the step
     * of this number. */
    _Atomic uint64_t seen_number;
    uint64_t seen_ticks;
    int64_t seen_cpu_ns;
    uint64_t watched_number; /* the watchdog's own: the step that it looks at, ... */
    int64_t watched_ns;      /* ... and after how long it looks where that is */
    /* The rest with the GIL. */
    bool in_use;
    bool has_clock; /* its time is the monotonic clock's: how late it is can be told */
    uint32_t recording;
    long kernel_id; /* the system's number of the thread; 0: unknown */
    qp_thread *thread;
    qp_loop *loop;
    PyObject *object;     /* owned: the running loop, identity only */
    PyObject *ready;      /* owned deque of the callbacks that are ready, or NULL */
    PyObject *timers;     /* owned list of the timers, or NULL */
    struct qp_step *step; /* in progress, or NULL; owned by its caller */
    struct qp_running_loop *outer;
    int64_t gc_ticks; /* spent in garbage collections */
    uint64_t gc_started_ticks;
    uint64_t settled_ticks; /* up to when run_ticks is */
    uint64_t last_ticks;    /* when its last step ended */
    bool is_adopted;        /* it ran before recording began: no hook sees it stop */
    PyObject *start_beats; /* owned: what starts its heartbeat when a step ends after the first beat
                            * was due; NULL: it has started, or there is none */
    PyObject *end_beats;   /* owned: what ends it, or None; NULL: it has not started */
    uint64_t beat_due_ticks; /* when the first beat is due */
} qp_running_loop;

/* Steps from this many nanoseconds on are stalls. */
extern int64_t qp_stall_ns;

/* The running_loop of the running thread, or NULL: no loop that is recorded runs in it. */
static inline qp_running_loop *qp_running_loop_here(void)
{
    qp_thread *thread = qp_here.thread;
    qp_running_loop *running_loop = thread ? thread->running_loop : NULL;
    return running_loop && !qp_here.muted && running_loop->recording == qp_recording &&
                   thread->tstate == PyThreadState_Get()
               ? running_loop
               : NULL;
}

/* A running_loop for a loop that starts to run in the running thread; NULL: it is not recorded.
 * `kind` is a str. Never raises. */
qp_running_loop *qp_running_loop_enter(PyObject *kind, PyObject *loop, bool has_steps);

/* The loop has stopped; NULL is ignored. Keeps the exception that is set. */
void qp_running_loop_leave(qp_running_loop *running_loop);

/* The running_loops that were ever used; they stay. Needs no GIL. */
qp_running_loop *qp_running_loops(int *count);

/* Drops the exception that our own Python code has raised: what runs is the program's, and must
 * run. False: it is none of ours (an interrupt), and stays. */
bool qp_own_error_dropped(void);

/* Starts the heartbeat of a running_loop whose step has ended, where that is due: most loops that a
 * program starts end before. False with an exception, as above. */
bool qp_running_loop_start_beats(qp_running_loop *running_loop, uint64_t busy_since_ticks);

/* Notes a timer's or a heartbeat's lag. */
void qp_loop_timer(qp_loop *loop, int64_t lag_ns);
void qp_loop_beat(qp_loop *loop, int64_t lag_ns);

/* The row of a loop. */
uint32_t qp_loop_number(const qp_loop *loop);

/* Brings the running loops' run time up to now. */
void qp_loops_flush(void);

/* Drops what was added up; the loops stay. */
void qp_loops_clear(void);

/* In a forked child: what was measured is the parent's, and so are the loops that run: asyncio
 * runs none of them on there. */
void qp_loops_after_fork(void);

#endif
