/* The row of an execution that is not in the aggregates yet, or may still serve rows. */
#ifndef QP_MEMORY_EXECUTION_ROW_H
#define QP_MEMORY_EXECUTION_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"
#include "runtime/operations.h"

struct qp_explanation;

/* What a probed call in progress and the trace callback exchange. */
typedef struct qp_meter {
    qp_key key;                         /* of the operation that began the execution */
    bool counts;                        /* its statement can be read later, or is read at its end */
    bool drops;                         /* the driver drops its statements before the call ends */
    bool sampled;                       /* page fetches are wanted too */
    bool counted;                       /* a statement has been counted for this execution */
    struct qp_explanation *explanation; /* where its plan shall go, or NULL */
    const void *main; /* identity of the sqlite3_stmt that it runs; those that start meanwhile are
                       * inside */
} qp_meter;

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

#endif
