/* The submitter of work that runs elsewhere: in a worker thread, or in a coroutine that another
 * greenlet awaits. The work's queries also count for the submitter. */
#pragma once

#include <Python.h>
#include <stdint.h>

#include "runtime/thread_local.h"

typedef struct qp_submitter {
    uint32_t recording;         /* the numbers are valid only in this one; 0 if unknown */
    uint32_t path;              /* the submitter's call path */
    uint32_t stack;             /* its whole stack, or the stack of other work from this path */
    int64_t span;               /* the value of the span's context variable there; 0: none */
    PyObject *note;             /* its label; or NULL */
    uint64_t calls;             /* driver calls made by the work */
    uint64_t pass;              /* pass of the watched line that submitted it; 0 if none */
    struct qp_submitter *below; /* while the work runs: of other work that began before it */
    const void *frame;          /* identity of the Python frame that runs it, or NULL */
} qp_submitter;

/* Begin and end the work in the running thread; in any order where greenlets switch. The owner of
 * the submitter keeps it in between. */
void qp_submitter_enter(qp_submitter *submitter);
void qp_submitter_leave(qp_submitter *submitter);

/* The submitter of the innermost work that the thread runs now, or NULL; work of waiting greenlets
 * does not count. */
qp_submitter *qp_submitter_running(void);

static inline qp_submitter *qp_submitter_now(void)
{
    return qp_here.submitter ? qp_submitter_running() : NULL;
}
