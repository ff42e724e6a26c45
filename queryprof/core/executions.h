/* Executions: which statement a cursor serves now, and what that execution has cost so far.
 *
 * A table keyed by the cursor's address, bounded: the oldest execution of a full set makes room,
 * and rows fetched from it later belong to "(unknown)". A cursor's address may come to mean
 * another cursor; the execute that comes first on a new cursor overwrites what was there.
 *
 * Serving a row only adds to the execution; the sums reach the aggregates when it is settled:
 * at the next execute of the cursor, at a flush, or when it becomes notably slow.
 */
#ifndef QP_EXECUTIONS_H
#define QP_EXECUTIONS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregates.h"
#include "counters.h"
#include "operations.h"

/* Calls that served rows and have not reached the aggregates: all of one operation. */
typedef struct {
    qp_operation operation;
    int64_t calls; /* 0: nothing is pending */
    int64_t errors;
    int64_t rows;
    int64_t ticks;
    int64_t nested_ns;
    int64_t min_ticks;
    int64_t max_ticks;
    uint64_t last_ticks; /* when the last one began */
    int64_t timed_calls; /* less than `calls` where reading the clock is dear */
} qp_pending_rows;

typedef struct qp_execution {
    const void *cursor; /* identity only */
    uint64_t serial;    /* 1, 2, 3, ... in the order they began */
    bool in_use;        /* a call is serving rows: its place cannot be taken */
    bool ignored;       /* not the program's */
    bool sampled_stack;
    uint32_t generation; /* of the aggregates that `began` points into */
    qp_aggregate *began; /* of the operation that began it */
    qp_meter meter;      /* holds its key too */
    qp_pending_rows pending;
    uint64_t started_ticks;
    int64_t duration_ns;   /* without what is pending */
    int64_t settled_ns;    /* how much of it the distribution holds; -1: it is not in yet */
    int64_t notable_ticks; /* after so many more it deserves a stack or an exemplar */
    int64_t rows;          /* fetched */
    int64_t plotted_ns;    /* self time of what began it, still to go on the timeline; -1: none */
    int64_t plotted_rows;
    uint32_t stack;       /* 0: none taken */
    uint32_t stack_epoch; /* the stack's number is valid in this interval alone */
    int64_t stack_weight; /* executions that the stack samples hold for it */
    int64_t stack_ns;
} qp_execution;

/* Allocates the table (once; it stays, for calls that are in progress when recording stops);
 * false without memory. */
bool qp_executions_start(void);

/* The execution that a cursor serves, or NULL. Valid until the next qp_execution_place. */
qp_execution *qp_execution_of(const void *cursor);

/* The place for a new execution of a cursor: what was there is settled and gone, and all is to
 * be filled in by the caller. NULL: every place is in use. */
qp_execution *qp_execution_place(const void *cursor);

/* Settles and forgets what a cursor served. */
void qp_execution_drop(const void *cursor);

/* Brings an execution's pending rows and its duration to the aggregates, and keeps it as an
 * exemplar or stack sample where it deserves that. `tstate` is the running thread's while the
 * execution's own frames run, else NULL; `sql` and `parameters` are borrowed, may be NULL. */
void qp_execution_settle(qp_execution *execution, PyThreadState *tstate, PyObject *sql,
                         PyObject *parameters);

/* Settles all executions; at a flush. */
void qp_executions_settle(void);

/* Forgets all executions; rows fetched from their cursors later belong to "(unknown)". */
void qp_executions_forget(void);

/* Says that stack numbers given out before are void. */
void qp_executions_forget_stacks(void);

/* Whether SQL and parameters of exemplars are kept (the program's secrets; off by default). */
void qp_executions_keep_parameters(bool keep);

#endif
