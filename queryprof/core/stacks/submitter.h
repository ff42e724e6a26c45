/* The submitter of work that runs elsewhere: in a worker thread, or in a coroutine that another
 * greenlet awaits. The work's queries also count for the submitter. */
#pragma once

#include <Python.h>
#include <stdint.h>

#include "runtime/thread_local.h"

typedef struct qp_submitter {
    uint32_t recording;         /* number of the recording in which the numbers here are valid; 0
                                 * if unknown */
    uint32_t path;              /* the submitter's call path */
    uint32_t stack;             /* the submitter's complete stack, or the stack of earlier work
                                 * from this path */
    int64_t span;               /* the submitter's span; 0: none */
    PyObject *note;             /* the submitter's label, or NULL */
    uint64_t calls;             /* driver calls made by the work */
    uint64_t pass;              /* pass of the watched line that submitted the work; 0 if none */
    struct qp_submitter *below; /* while the work runs: the submitter of the previous work in this
                                 * thread */
    const void *frame;          /* identity of the Python frame that runs the work, or NULL */
} qp_submitter;

/* Begin and end the work in the running thread. Works may end in any order if greenlets switch. The
 * owner must keep the submitter from the beginning to the end. */
void qp_submitter_begin_work(qp_submitter *submitter);
void qp_submitter_end_work(qp_submitter *submitter);

/* Returns the submitter of the innermost work that the thread runs now, or NULL. Ignores the work
 * of waiting greenlets. */
qp_submitter *qp_running_submitter_find(void);

static inline qp_submitter *qp_running_submitter(void)
{
    return qp_here.submitter ? qp_running_submitter_find() : NULL;
}
