/* SQLite's reports about a connection while the program's calls use it: a statement starts or ends,
 * or the connection closes (sqlite3_trace_v2, https://www.sqlite.org/c3ref/trace_v2.html).
 *
 * The callback runs without the GIL. It touches only the calls that are in progress in its own
 * thread, and the connection's record, which the connection's mutex guards.
 *
 * A statement that starts belongs to the call if it has the text that the program passed. Other
 * statements start in the same call: the driver's BEGIN, and the statements that a virtual table
 * runs while the program's statement is being prepared. A statement with the right text may still
 * be finalized at any time. So the pointer is kept after the callback only if
 * qp_counters_identify_statement finds it in one of the driver's statement objects.
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
typedef struct qp_active_call {
    struct qp_active_call *below; /* the previous call in the thread. With greenlets, this call is
                                   * not always inside the previous call */
    qp_meter *volatile meter; /* meter of the call's execution; NULL if unknown, or if the recording
                               * ended */
    const void *frame;        /* identity of the Python frame that made the call; NULL if unknown */
    qp_operation operation;
    uint64_t start_ticks;
    bool is_measured;  /* queryprof's own time in this call is measured: see qp_own_part */
    int64_t own_ticks; /* queryprof's own time in the callbacks inside the call */
    /* Set for an operation that begins an execution. */
    bool has_more;        /* qp_first_run_end must be called at the end of the call */
    bool begins_counting; /* `statement` is the first statement of the execution */
    const void *db;       /* identity of the connection's sqlite3; NULL if unknown */
    PyObject *sql;        /* borrowed for the call; any object, or NULL */
    void *statement; /* sqlite3_stmt * that started with the text `sql`, before the driver is known
                      * to own it: valid only in the callback; NULL if none */
    uint32_t base[QP_COUNTERS]; /* the counters of `statement` when it started */
    uint32_t pages_at_start;
    qp_file_work work;
} qp_active_call;

/* Whether statements are counted, and the current epoch. Values of other epochs are invalid. */
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

/* Registers again for the currently needed events. The caller must hold the connection's mutex. */
void qp_trace_renew_events(qp_traced_connection *traced);

/* Returns the meter of the call that began last in this thread, or NULL. */
qp_meter *qp_meter_here(void);

/* Returns this thread's call that started the statement. Returns NULL if there is none, or if its
 * statement is identified already. */
qp_active_call *qp_call_that_started(const void *statement);
