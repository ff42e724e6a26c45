/* An execution that is not yet aggregated, or whose rows may still be fetched. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"
#include "runtime/operations.h"

struct qp_explanation;

typedef enum { QP_TRANSACTION_UNKNOWN, QP_NO_TRANSACTION, QP_IN_TRANSACTION } qp_transaction;

/* Data that a probed call in progress and the trace callback exchange. */
typedef struct qp_meter {
    qp_key key;        /* key of the operation that began the execution */
    bool counts;       /* the statement's counters can be read later, or at the
                        * statement's end */
    bool drops;        /* the driver finalizes its statements before the call ends */
    bool sampled;      /* the execution's page fetches are counted */
    bool counted;      /* a statement has been counted for this execution */
    bool is_whole;     /* the started statements cover all of the execution's
                        * text, so SQLite has accepted the text */
    uint32_t accepted; /* number of bytes of the text that the started statements
                        * cover */
    struct qp_explanation *explanation; /* where the statement's plan is stored, or NULL */
    const void *main;    /* identity of the sqlite3_stmt that the execution runs. Statements that
                          * start meanwhile are inside that statement */
    uint64_t connection; /* for workloads, if the driver has a private SQLite: serial number of
                          * the connection; 0 if unknown */
    qp_transaction transaction; /* transaction of that connection at the last event */
} qp_meter;

/* How far an execution has been added to the aggregates. A reader of a killed process's memory adds
 * the rest. The stage is stored last, when the fields that it covers are complete. */
typedef enum {
    QP_STAGE_FREE,
    QP_STAGE_BEGINNING, /* the call that begins the execution is in progress */
    QP_STAGE_BEGUN,     /* the call has ended, and is not in the aggregates */
    QP_STAGE_SETTLING,  /* the execution is being added; it is in the aggregates if the count of
                         * its row has changed */
    QP_STAGE_SETTLED    /* the execution is in the aggregates */
} qp_execution_stage;

/* Calls that fetched rows and are not in the aggregates yet. All these calls have the same
 * operation. */
typedef struct {
    qp_operation operation;
    uint32_t stage; /* a qp_execution_stage; only QP_STAGE_SETTLING has a meaning here: in other
                     * stages, no pending call was added */
    uint32_t row;   /* the aggregate to which the calls are being added */
    int64_t count_before; /* the count of that aggregate before */
    int64_t calls;        /* 0 if nothing is pending */
    int64_t errors;
    int64_t rows;
    int64_t ticks;
    int64_t nested_ticks;
    int64_t min_ticks;
    int64_t max_ticks;
    uint64_t last_ticks; /* when the last call ended */
    int64_t timed_calls; /* fewer than `calls` if reading the clock is expensive */
} qp_pending_rows;

typedef struct qp_execution {
    /* Set by calls. */
    const void *cursor; /* identity only; NULL without a cursor, or if a newer execution has the
                         * cursor */
    qp_execution_stage stage;
    bool in_use;  /* a call of this execution is in progress, so its slot cannot be reused */
    bool ignored; /* not executed by the program's code */
    bool sampled_stack;
    uint8_t run;     /* the number of the execution's run in its span; 0 if none */
    qp_meter meter;  /* includes the execution's key */
    uint64_t serial; /* 1, 2, 3, ... in the order in which executions began */
    int64_t span;    /* the running span to which the execution belongs; 0 if none */
    uint64_t started_ticks;
    int64_t ticks; /* duration of the call that began the execution */
    int64_t nested_ticks;
    int64_t rows;          /* rows that the execution changed */
    int64_t notable_ticks; /* if the execution takes this many ticks more, it becomes an exemplar or
                            * a stack sample */
    qp_pending_rows pending;
    /* Set by the first flush. */
    uint32_t began_row;     /* the aggregate of the operation that began the execution */
    uint32_t generation;    /* the generation of the aggregates in which began_row is valid */
    int64_t count_before;   /* the count of that aggregate before */
    int64_t duration_ns;    /* without the pending calls */
    int64_t settled_ns;     /* the part of duration_ns that the distribution of durations
                             * contains; -1: none */
    int64_t fetched;        /* fetched and changed rows */
    uint64_t plotted_ticks; /* the timeline contains the execution's time up to these ticks */
    uint32_t recent_call;   /* its place among the newest calls (recent_calls.h) */
    uint32_t stack;         /* 0 if not recorded */
    int64_t stack_weight;   /* number of executions that the stack samples count for this
                             * execution */
    int64_t stack_ns;
} qp_execution;

/* Returns when an execution began, or when its last fetch ended. */
static inline uint64_t qp_execution_last_use(const qp_execution *e)
{
    uint64_t fetched =
        e->pending.last_ticks; /* of an earlier execution if this one fetched nothing */
    return fetched > e->started_ticks ? fetched : e->started_ticks;
}
