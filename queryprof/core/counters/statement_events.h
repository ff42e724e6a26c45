/* What SQLite reports of a connection while the program's calls run on it: that a statement starts
 * or ends, that the connection closes (sqlite3_trace_v2,
 * https://www.sqlite.org/c3ref/trace_v2.html).
 *
 * The callback runs without the GIL. It touches only the calls that are in progress in its own
 * thread, and the connection's record, which the connection's mutex guards.
 *
 * A statement that starts is the call's own if it has the call's text. Others start in the same
 * call: the driver's BEGIN, and what a virtual table runs when it is connected, while the program's
 * statement is being prepared. Equal text is no proof that the statement lives on: it is kept past
 * the callback only after qp_counters_identify has found it in one of the driver's statement
 * objects.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "counters/connections.h"
#include "counters/file_work.h"
#include "memory/execution_row.h"
#include "runtime/operations.h"
#include "sqlite/explain.h"
#include "sums/aggregates.h"

/* A probed call in progress, as far as the trace callback reads and writes it. It is the first part
 * of a qp_call, never on the C stack: the stack of a greenlet that waits inside the call is moved
 * away. */
typedef struct qp_active {
    struct qp_active *below;  /* the call that began before it in this thread; with greenlets not
                               * always the call around it */
    qp_meter *volatile meter; /* meter of its execution; NULL if unknown, or the recording ended */
    const void *frame;        /* identity of the Python frame that made it; NULL if unknown */
    qp_operation operation;
    uint64_t start_ticks;
    bool is_measured;  /* what it costs is measured: see qp_own_part ... */
    int64_t own_ticks; /* ... and in the callbacks inside it */
    /* Set for an operation that begins an execution. */
    bool has_more;        /* qp_first_run_end has work when it ends */
    bool begins_counting; /* `statement` is the execution's first */
    const void *db;       /* identity of its connection's sqlite3; NULL if unknown */
    PyObject *sql;        /* borrowed for the call; any object, or NULL */
    void *statement; /* sqlite3_stmt * that started with that text, and is not known to be one of
                      * the driver's: valid in the callback alone; NULL: none */
    uint32_t base[QP_COUNTERS]; /* its counters then */
    uint32_t pages_at_start;
    qp_file_work work;
} qp_active;

/* Whether statements are counted, and the present epoch: values of another epoch are not valid. */
extern struct qp_counting {
    volatile bool is_on;
    volatile bool notes_connections; /* a workload is recorded */
    uint32_t epoch;
} qp_counting;

/* Registers for a connection's (sqlite3 *) events. `traces_ends`: also for every statement's end.
 * NULL if there are too many connections, or SQLite was built without mutexes, and a statement
 * could be finalized while another thread reads it. */
qp_traced_connection *qp_trace_connection(void *db, const qp_sqlite_functions *sqlite,
                                          bool traces_ends);

/* Registers again for the events that are needed now; with the connection's mutex. */
void qp_trace_again(qp_traced_connection *traced);

/* The meter of the call that began last in this thread, or NULL. */
qp_meter *qp_meter_here(void);

/* The call of this thread in which this statement has started and is not identified yet, or
 * NULL. */
qp_active *qp_call_that_started(const void *statement);
