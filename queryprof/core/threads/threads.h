/* The threads that call the driver: records and names. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/recording.h"
#include "runtime/thread_local.h"

struct qp_active_call;
struct qp_call;
struct qp_execution;
struct qp_running_loop;

typedef struct qp_thread {
    PyThreadState *tstate;                /* the thread's Python thread state */
    uint16_t number;                      /* number of the thread's name */
    uint32_t recording;                   /* `number` is valid only in this recording */
    uint32_t random;                      /* state of the random number generator, never 0 */
    struct qp_execution *serving;         /* the execution from which the thread fetched last; its
                                           * cursor must be checked */
    struct qp_active_call *active;        /* the probed call in progress that began last */
    uint32_t awaited_path;                /* the call path of the awaited call that begins next */
    struct qp_call *free_calls;           /* owned: calls to reuse; may be NULL */
    int64_t database_ticks;               /* time spent in outermost calls that have ended */
    int64_t changed_rows;                 /* rows changed by executions that have ended */
    struct qp_running_loop *running_loop; /* event loop that runs in the thread, or NULL */
    volatile bool ended;                  /* the operating-system thread has ended, so the record
                                           * can be reused */
    struct qp_thread *next;               /* next in the list of all records */
} qp_thread;

/* Returns the record of the running thread, and adds a new record if needed. The list of records
 * owns the record. NULL if the thread runs in another interpreter than the recorded one, or if out
 * of memory. Never raises. */
qp_thread *qp_thread_record(uint32_t recording);

/* Returns the first of all records, or NULL if there are none. The caller must hold the GIL. */
const qp_thread *qp_threads_first(void);

/* Returns the running thread's record, or NULL if its calls are not recorded. */
static inline qp_thread *qp_thread_here(void)
{
    if (!qp_recording || qp_here.muted) {
        return NULL;
    }
    qp_thread *thread = qp_here.thread;
    if (thread && thread->recording == qp_recording && thread->tstate == PyThreadState_Get()) {
        return thread;
    }
    return qp_thread_record(qp_recording);
}

enum { QP_THREAD_OTHER = 1 /* "(other)" */ };

/* Clears the names of threads. `owner` is the interpreter that records from now on. Returns 0, or
 * -1 with an exception. */
int qp_threads_start(PyInterpreterState *owner);
void qp_threads_stop(void);

/* Returns the next pseudo-random number of a thread (xorshift; Marsaglia, 2003). */
static inline uint32_t qp_thread_random(qp_thread *thread)
{
    uint32_t x = thread->random;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return thread->random = x;
}

bool qp_thread_name_is_known(uint16_t thread);

/* Returns the number of a thread's name. Raises nothing. */
uint16_t qp_thread_name_number(PyObject *name);
