/* Event loops: the sums for each kind of loop and thread name, and the running loops.
 *
 * A qp_running_loop is one loop in one thread, from its start until it stops. All loops of the same
 * kind, in threads of the same name, share their sums. So a program that starts ten thousand loops,
 * one after another, needs no more room than a program that starts one.
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
    /* Read by the watchdog without the GIL: the start of the step in progress (for a loop whose
     * steps cannot be seen, the time when the next heartbeat is due; 0: no step, no heartbeat), and
     * the number of the step. */
    _Atomic uint64_t started_ticks;
    _Atomic uint64_t step_number;
    /* Written by the watchdog when it first sees a step: the step's number, the time, and the CPU
     * time of the loop's thread. */
    _Atomic uint64_t seen_number;
    uint64_t seen_ticks;
    int64_t seen_cpu_ns;
    int64_t seen_queued_ns; /* the thread's time waiting for a CPU at that moment; -1: unknown */
    /* The thread's time waiting for a CPU between that moment and the watchdog's last sample; -1:
     * unknown. */
    _Atomic int64_t queued_ns;
    /* Only used by the watchdog: the step that it watches, and the duration of the step at which it
     * takes the next sample. */
    uint64_t watched_number;
    int64_t watched_ns;
    /* The fields below are protected by the GIL. */
    bool in_use;
    bool has_clock; /* the loop's `time` is the monotonic clock, so that its lag can be computed */
    uint32_t recording;
    long kernel_id; /* the system's number of the thread; 0 if unknown */
    qp_thread *thread;
    qp_loop *loop;
    PyObject *object;     /* owned: the running loop, identity only */
    PyObject *ready;      /* owned deque of the callbacks that are ready, or NULL */
    PyObject *timers;     /* owned list of the timers, or NULL */
    struct qp_step *step; /* step in progress, or NULL; owned by its caller */
    struct qp_running_loop *outer;
    int64_t gc_ticks; /* ticks spent in garbage collections */
    uint64_t gc_started_ticks;
    uint64_t settled_ticks;  /* run_ticks includes the time up to here */
    uint64_t last_ticks;     /* when the loop's last step ended */
    bool is_adopted;         /* the loop ran before recording began, so no hook reports its stop */
    PyObject *start_beats;   /* owned: starts the heartbeat, when a step ends after the first beat
                              * was due. NULL if the heartbeat has started, or if the loop needs
                              * none */
    PyObject *end_beats;     /* owned: ends the heartbeat, or None; NULL if the heartbeat has not
                              * started */
    uint64_t beat_due_ticks; /* when the first beat is due */
} qp_running_loop;

/* Steps that last this many nanoseconds or longer are stalls. */
extern int64_t qp_stall_ns;

/* Returns the recorded loop that runs in the calling thread, or NULL. */
static QP_INLINE qp_running_loop *qp_running_loop_here(void)
{
    qp_thread *thread = qp_here.thread;
    qp_running_loop *running_loop = thread ? thread->running_loop : NULL;
    return running_loop && !qp_here.muted && running_loop->recording == qp_recording &&
                   thread->tstate == PyThreadState_Get()
               ? running_loop
               : NULL;
}

/* Registers a loop that starts in the running thread. Returns its record (never freed), or NULL if
 * the loop is not recorded. `kind` is a str. Keeps a new reference to `loop`. Never raises. */
qp_running_loop *qp_running_loop_enter(PyObject *kind, PyObject *loop, bool has_steps);

/* Notes that a loop has stopped. Ignores NULL. Preserves the current exception. */
void qp_running_loop_leave(qp_running_loop *running_loop);

/* Returns the records of all loops, running or stopped. They are never freed. The caller need not
 * hold the GIL. */
qp_running_loop *qp_running_loops(int *count);

/* Clears an Exception that queryprof's own Python code raised, so that the program's code still
 * runs. Returns false for other exceptions, such as KeyboardInterrupt, which belong to the program
 * and stay set. */
bool qp_own_exception_clear(void);

/* Starts the heartbeat of a loop whose step has ended, if the first beat is due. Most loops end
 * before that, and never need a heartbeat. Returns false if an exception of the program is set. */
bool qp_running_loop_start_heartbeat(qp_running_loop *running_loop, uint64_t busy_since_ticks);

/* Adds a timer's or a heartbeat's lag to the sums. */
void qp_loop_add_timer_lag(qp_loop *loop, int64_t lag_ns);
void qp_loop_add_heartbeat_lag(qp_loop *loop, int64_t lag_ns);

/* Returns the row number of a loop. */
uint32_t qp_loop_number(const qp_loop *loop);

/* Adds the running loops' run time up to now. */
void qp_loops_flush(void);

/* Clears the sums; the loops stay. */
void qp_loops_clear(void);

/* In a forked child: stops recording the parent's running loops, because asyncio does not continue
 * them there. */
void qp_loops_after_fork(void);
