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
    qp_key key;                         /* key of the operation that began the execution */
    bool counts;                        /* its statement's counters can be read later, or are read
                                         * at its end */
    bool drops;                         /* the driver drops its statements before the call ends */
    bool sampled;                       /* its page fetches are also counted */
    bool counted;                       /* a statement has been counted for this execution */
    bool is_whole;                      /* the started statements are its whole text: SQLite has
                                         * accepted all */
    uint32_t accepted;                  /* bytes of its text that they are */
    struct qp_explanation *explanation; /* where its plan is stored, or NULL */
    const void *main; /* identity of the sqlite3_stmt that it runs; others that start while it runs
                       * are inside it */
    uint64_t connection; /* used by workloads if the driver has a private SQLite: the serial number
                          * of the connection that it ran on; 0: unknown ... */
    qp_transaction transaction; /* ... and the state of that one at the last event */
} qp_meter;

/* How far a call's figures have reached the aggregates: a reader of a killed process's memory adds
 * the rest. Stored last, when the fields that it covers are complete. */
typedef enum {
    QP_STAGE_FREE,
    QP_STAGE_BEGINNING, /* the call that begins it is in progress */
    QP_STAGE_BEGUN,     /* that call has ended, and has not reached the aggregates */
    QP_STAGE_SETTLING,  /* it is being added to them; done if its row's count has changed */
    QP_STAGE_SETTLED    /* it has reached them */
} qp_stage;

/* Calls that fetched rows and have not reached the aggregates: all of one operation. */
typedef struct {
    qp_operation operation;
    uint32_t stage;       /* QP_STAGE_SETTLING: see there; else what is pending is not added yet */
    uint32_t row;         /* the aggregate that they are added to ... */
    int64_t count_before; /* ... and its count before */
    int64_t calls;        /* 0 if nothing is pending */
    int64_t errors;
    int64_t rows;
    int64_t ticks;
    int64_t nested_ticks;
    int64_t min_ticks;
    int64_t max_ticks;
    uint64_t last_ticks; /* when the last one ended */
    int64_t timed_calls; /* less than `calls` where reading the clock is expensive */
} qp_pending_rows;

typedef struct qp_execution {
    /* what a call stores */
    const void *cursor; /* identity only; NULL if none, or superseded */
    qp_stage stage;
    bool in_use;  /* one of its calls is in progress: its place cannot be reused */
    bool ignored; /* not the program's */
    bool sampled_stack;
    uint8_t run;     /* the number of its run in its span; 0 if none */
    qp_meter meter;  /* includes its key */
    uint64_t serial; /* 1, 2, 3, ... in the order they began */
    int64_t span;    /* the running span that it belongs to; 0 if none */
    uint64_t started_ticks;
    int64_t ticks; /* duration of the call that began it ... */
    int64_t nested_ticks;
    int64_t rows;          /* ... that it changed */
    int64_t notable_ticks; /* after this many more it gets a stack or an exemplar */
    qp_pending_rows pending;
    /* Set by the first flush. */
    uint32_t began_row;     /* the aggregate of the operation that began it ... */
    uint32_t generation;    /* ... in this generation of the aggregates ... */
    int64_t count_before;   /* ... and its count before */
    int64_t duration_ns;    /* without what is pending */
    int64_t settled_ns;     /* the part that the distribution contains; -1: not added yet */
    int64_t fetched;        /* rows, changed ones included */
    uint64_t plotted_ticks; /* the timeline has everything until then */
    uint32_t stack;         /* 0: none taken */
    int64_t stack_weight;   /* executions that the stack samples hold for it */
    int64_t stack_ns;
} qp_execution;
