/* SQLite's own counters of the statements that run inside a probed call.
 *
 * A trace callback (sqlite3_trace_v2) reads them when a statement starts and when it ends; it
 * runs without the GIL and touches only the running thread's meter and the connection's own
 * tracker. The functions of SQLite are looked up in the library that the driver has loaded.
 */
#ifndef QP_COUNTERS_H
#define QP_COUNTERS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregates.h"

/* What a probed call wants counted, and what was: in the execution that it serves. */
typedef struct qp_meter {
    uint64_t execution; /* its serial number */
    qp_key key;         /* of the operation that began it */
    bool sampled;       /* page fetches are wanted too */
    bool many;          /* an executemany: counted as a whole after its first rows */
    bool touched;       /* `counters` holds something; before, it is not even zeroed */
    uint32_t started;   /* statements that began inside the call */
    uint32_t ended;
    void *tracker; /* whose per-statement events were switched off for `many` */
    qp_counters counters;
} qp_meter;

/* Looks up SQLite in the shared library at `library` (NULL: in the process itself) and counts
 * on every connection opened from now on. Returns NULL, or why it cannot (static text). */
const char *qp_counters_start(const char *library);

/* Stops counting. Connections keep a callback that does nothing, because taking it away might
 * take away the program's own. */
void qp_counters_stop(void);

/* Counts on a connection that was open before; `connection` is borrowed. Returns NULL, or why
 * its counters stay unknown (static text). */
const char *qp_counters_attach(PyObject *connection);

/* Ends the counting of a call: reads what an executemany left. May release the GIL. */
void qp_meter_finish(qp_meter *meter);

/* Whether statements ended outside their own probed calls since the last collecting. */
extern volatile bool qp_orphans_waiting;

/* Adds those statements' counters to their aggregates. */
void qp_orphans_collect(void);

/* Statements whose counters were lost for want of room. */
uint64_t qp_counters_lost(void);

/* Makes the locks anew in a forked child. */
void qp_counters_after_fork(void);

#endif
