/* Executions: which statement a cursor serves now, and what that execution has cost so far.
 *
 * An execution is young first: a call only notes what it measured, in one of a few places that
 * are used by turns. When all are taken, all are settled together (their sums go to the
 * aggregates), which costs a fraction of settling each by itself: the code and the tables are
 * fetched into the CPU's caches once for all. Those that may still serve rows then move to a
 * bounded table, where the oldest of a full set makes room; rows fetched from it later belong to
 * "(unknown)". A cursor's address may come to mean another cursor: the execute that comes first
 * on a new cursor supersedes what was there.
 */
#ifndef QP_EXECUTIONS_H
#define QP_EXECUTIONS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregates.h"
#include "counters.h"
#include "operations.h"

/* How far what a call has noted has come: who reads the memory of a killed process adds the rest.
 * Stored last, when what it speaks of is complete. */
typedef enum {
    QP_STAGE_FREE,
    QP_STAGE_BEGINNING, /* the call that begins it is in progress */
    QP_STAGE_BEGUN,     /* that call has ended, and has not reached the aggregates */
    QP_STAGE_SETTLING,  /* it reaches them just now; it has if its row's count is another */
    QP_STAGE_SETTLED    /* it has */
} qp_stage;

/* Calls that served rows and have not reached the aggregates: all of one operation. */
typedef struct {
    qp_operation operation;
    uint32_t stage;       /* QP_STAGE_SETTLING: see there; else what is pending counts */
    uint32_t row;         /* of the aggregate that they reach then ... */
    int64_t count_before; /* ... and its count before */
    int64_t calls;        /* 0: nothing is pending */
    int64_t errors;
    int64_t rows;
    int64_t ticks;
    int64_t nested_ticks;
    int64_t min_ticks;
    int64_t max_ticks;
    uint64_t last_ticks; /* when the last one began */
    int64_t timed_calls; /* less than `calls` where reading the clock is dear */
} qp_pending_rows;

typedef struct qp_execution {
    /* what a call notes */
    const void *cursor; /* identity only; NULL: none, or superseded */
    qp_stage stage;
    bool in_use;  /* a call of it is in progress: its place cannot be taken */
    bool ignored; /* not the program's */
    bool sampled_stack;
    qp_meter meter;  /* holds its key too */
    uint64_t serial; /* 1, 2, 3, ... in the order they began */
    int64_t span;    /* the running span that it belongs to; 0: none */
    uint64_t started_ticks;
    int64_t ticks; /* of the call that began it ... */
    int64_t nested_ticks;
    int64_t rows;          /* ... that it changed */
    int64_t notable_ticks; /* after so many more it deserves a stack or an exemplar */
    qp_pending_rows pending;
    /* from the first settling on */
    uint32_t began_row;   /* the aggregate of the operation that began it ... */
    uint32_t generation;  /* ... in this generation of the aggregates ... */
    int64_t count_before; /* ... and its count before */
    int64_t duration_ns;  /* without what is pending */
    int64_t settled_ns;   /* how much of it the distribution holds; -1: it is not in yet */
    int64_t fetched;      /* rows, changed ones included */
    uint32_t stack;       /* 0: none taken */
    int64_t stack_weight; /* executions that the stack samples hold for it */
    int64_t stack_ns;
} qp_execution;

/* Makes the table (it stays, for calls that are in progress when recording stops); false without
 * memory. */
bool qp_executions_start(void);

/* A place for a new execution, in use and otherwise to be filled in by the caller; NULL: calls in
 * progress take all places. */
qp_execution *qp_execution_reserve(void);

/* Copies a settled execution that may still serve rows to the table of old ones, and returns the
 * copy; NULL: calls in progress take all the places that it could have. */
qp_execution *qp_execution_keep(const qp_execution *execution);

/* The execution that a cursor serves, or NULL. Valid until the next qp_execution_reserve. */
qp_execution *qp_execution_of(const void *cursor);

/* Brings an execution's pending rows and its duration to the aggregates, and keeps it as an
 * exemplar or stack sample where it deserves that. `tstate` is the running thread's while the
 * execution's own frames run, else NULL; `sql` and `parameters` are borrowed, may be NULL. */
void qp_execution_settle(qp_execution *execution, PyThreadState *tstate, PyObject *sql,
                         PyObject *parameters);

/* Counts an error of the call that began an execution, which is settled. */
void qp_execution_failed(qp_execution *execution);

/* Settles all executions. */
void qp_executions_settle(void);

/* Notes that an execution has pending rows again, since it was last settled. */
void qp_execution_pends(const qp_execution *execution);

/* Gives back the place of an execution whose recording ended while its call was in progress. */
void qp_execution_abandon(qp_execution *execution);

/* Forgets all executions but those of calls in progress, which abandon theirs at their ends; rows
 * fetched from their cursors later belong to "(unknown)". */
void qp_executions_forget(void);

/* In a forked child: also those of calls in progress, which use none from here on. */
void qp_executions_after_fork(void);

/* Whether SQL and parameters of exemplars are kept (the program's secrets; off by default). */
void qp_executions_keep_parameters(bool keep);

#endif
