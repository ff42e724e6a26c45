#include "counters.h"

#include <pythread.h>
#include <string.h>

#include "allocation.h"
#include "callpath.h"
#include "sqlite_library.h"
#include "thread_local.h"

enum {
    TRACKERS = 1024,   /* connections open at once whose statements are counted */
    RUNNING = 8,       /* statements of one connection that run at once */
    ORPHANS = 512,     /* statements that ended outside their calls, between two calls */
    ROWS_PROFILED = 8, /* of an executemany, before it is counted as a whole */
    STATEMENTS_SEARCHED = 4096
};

enum { VM_STEPS, FULL_SCAN_STEPS, SORTS, AUTOMATIC_INDEXES, REPREPARES, COUNTERS };

static const int counter_codes[COUNTERS] = {
    [VM_STEPS] = QP_STMTSTATUS_VM_STEP,     [FULL_SCAN_STEPS] = QP_STMTSTATUS_FULLSCAN_STEP,
    [SORTS] = QP_STMTSTATUS_SORT,           [AUTOMATIC_INDEXES] = QP_STMTSTATUS_AUTOINDEX,
    [REPREPARES] = QP_STMTSTATUS_REPREPARE,
};

/* A statement between its start and its end, and after it: what its counters were then, so that
 * the next start need not read them all. */
typedef struct {
    void *statement;    /* sqlite3_stmt *, SQLite's; NULL: free */
    uint64_t execution; /* 0: it has ended */
    qp_key key;
    bool first; /* of its execution: it alone counts the execution as known */
    bool sampled;
    uint32_t base[COUNTERS]; /* at the start, or at the end when it has ended */
    uint32_t runs_at_end;    /* SQLite's count of its runs; 0: it has not ended yet */
    uint32_t pages_at_start;
    uint64_t runs_at_start; /* of the connection */
} running_statement;

/* A connection's. Changed only inside SQLite's calls on it, which its mutex keeps apart. */
typedef struct {
    void *db;                /* sqlite3 *, SQLite's; NULL: free */
    uint64_t runs;           /* statements started so far */
    running_statement *last; /* the one that started last */
    running_statement running[RUNNING];
} tracker;

typedef struct {
    qp_key key;
    qp_counters counters;
} orphan;

static struct {
    volatile bool counting;
    PyThread_type_lock lock; /* of what follows; never held while waiting for anything */
    tracker *trackers;       /* allocated at the first start, kept for SQLite's callbacks */
    void *dbs[TRACKERS];     /* trackers[i].db again, close together to search */
    orphan orphans[ORPHANS];
    int orphan_count;
    uint64_t lost;
} state;

volatile bool qp_orphans_waiting = false;

static tracker *take_tracker(void *db)
{
    int taken = -1;
    PyThread_acquire_lock(state.lock, WAIT_LOCK);
    for (int i = 0; i < TRACKERS; i++) {
        if (state.dbs[i] == db) { /* its trace was displaced, so its end was never told */
            taken = i;
            break;
        }
        if (taken < 0 && !state.dbs[i]) {
            taken = i;
        }
    }
    if (taken >= 0) {
        memset(&state.trackers[taken], 0, sizeof *state.trackers);
        state.trackers[taken].db = state.dbs[taken] = db;
    }
    PyThread_release_lock(state.lock);
    return taken >= 0 ? &state.trackers[taken] : NULL;
}

static void release_tracker(tracker *t)
{
    PyThread_acquire_lock(state.lock, WAIT_LOCK);
    t->db = state.dbs[t - state.trackers] = NULL;
    PyThread_release_lock(state.lock);
}

static bool is_tracked(void *db)
{
    for (int i = 0; i < TRACKERS; i++) {
        if (state.dbs[i] == db) {
            return true;
        }
    }
    return false;
}

static uint32_t page_fetches(void *db)
{
    int hits = 0, misses = 0, peak;
    qp_sqlite.db_status(db, QP_DBSTATUS_CACHE_HIT, &hits, &peak, 0);
    qp_sqlite.db_status(db, QP_DBSTATUS_CACHE_MISS, &misses, &peak, 0);
    return (uint32_t)hits + (uint32_t)misses;
}

static running_statement *find_running(tracker *t, void *statement)
{
    if (t->last && t->last->statement == statement) {
        return t->last;
    }
    for (int i = 0; i < RUNNING; i++) {
        if (t->running[i].statement == statement) {
            return &t->running[i];
        }
    }
    return NULL;
}

/* A place for a statement that starts: a free one, an ended one's, or that of one whose counters
 * become unknown. */
static running_statement *place_running(tracker *t)
{
    running_statement *ended = NULL;
    for (int i = 0; i < RUNNING; i++) {
        int place = (int)((t->runs + (uint64_t)i) % RUNNING);
        if (!t->running[place].statement) {
            return &t->running[place];
        }
        if (!t->running[place].execution) {
            ended = &t->running[place];
        }
    }
    return ended ? ended : &t->running[t->runs % RUNNING];
}

static uint32_t counter_of(void *statement, int code)
{
    return (uint32_t)qp_sqlite.stmt_status(statement, code, 0);
}

static void statement_started(tracker *t, void *statement)
{
    qp_meter *meter = qp_here.meter;
    running_statement *r = find_running(t, statement);
    if (r && meter && r->execution == meter->execution) {
        return; /* a trigger inside it, or the next row of an executemany */
    }
    t->runs++;
    if (!meter) {
        if (r) {
            r->statement = NULL;
        }
        return;
    }
    /* A new statement at an old one's address has not run yet; a known one has, as often as when
     * it last ended. */
    bool known = r && r->runs_at_end && counter_of(statement, QP_STMTSTATUS_RUN) == r->runs_at_end;
    if (!known) {
        r = r ? r : place_running(t);
        r->statement = statement;
        for (int i = 0; i < COUNTERS; i++) {
            r->base[i] = counter_of(statement, counter_codes[i]);
        }
    }
    t->last = r;
    r->execution = meter->execution;
    r->key = meter->key;
    r->first = meter->started++ == 0;
    r->sampled = meter->sampled;
    r->runs_at_start = t->runs;
    r->runs_at_end = 0;
    if (r->sampled) {
        r->pages_at_start = page_fetches(t->db);
    }
}

/* Adds what a statement did since its start; it is not running any more. */
static void read_counters(tracker *t, running_statement *r, qp_counters *into)
{
    uint32_t done[COUNTERS];
    for (int i = 0; i < COUNTERS; i++) {
        uint32_t now = counter_of(r->statement, counter_codes[i]);
        done[i] = now - r->base[i];
        r->base[i] = now;
    }
    into->vm_steps += done[VM_STEPS];
    into->full_scan_steps += done[FULL_SCAN_STEPS];
    into->sorts += done[SORTS];
    into->automatic_indexes += done[AUTOMATIC_INDEXES];
    into->reprepares += done[REPREPARES];
    into->counted += r->first;
    if (r->sampled && t->runs == r->runs_at_start) { /* else others' fetches are in it */
        into->page_fetches += (page_fetches(t->db) - r->pages_at_start) & 0x7fffffff;
        into->page_fetch_samples += r->first;
    }
    r->execution = 0;
    r->runs_at_end = counter_of(r->statement, QP_STMTSTATUS_RUN);
}

/* The meter's counters, zeroed at their first use. */
static qp_counters *counters_of(qp_meter *meter)
{
    if (!meter->touched) {
        meter->touched = true;
        meter->counters = (qp_counters){0};
    }
    return &meter->counters;
}

static void keep_orphan(const qp_key *key, const qp_counters *counters)
{
    PyThread_acquire_lock(state.lock, WAIT_LOCK);
    if (state.orphan_count < ORPHANS) {
        state.orphans[state.orphan_count++] = (orphan){*key, *counters};
        qp_orphans_waiting = true;
    } else {
        state.lost++;
    }
    PyThread_release_lock(state.lock);
}

static int on_trace(unsigned event, void *context, void *subject, void *detail);

static void statement_ended(tracker *t, void *statement)
{
    running_statement *r = find_running(t, statement);
    if (!r || !r->execution) {
        return;
    }
    qp_meter *meter = qp_here.meter;
    if (meter && meter->execution == r->execution) {
        read_counters(t, r, counters_of(meter));
        if (meter->many && ++meter->ended == ROWS_PROFILED) {
            /* The end of each row costs two reads of the wall clock inside SQLite. */
            meter->tracker = t;
            qp_sqlite.trace_v2(t->db, QP_TRACE_STMT | QP_TRACE_CLOSE, on_trace, t);
        }
    } else {
        qp_counters counters = {0};
        read_counters(t, r, &counters);
        keep_orphan(&r->key, &counters);
    }
}

/* Whether the connection still has a statement; its mutex is held. */
static bool has_statement(void *db, void *wanted)
{
    void *statement = qp_sqlite.next_stmt(db, NULL);
    for (int i = 0; statement && statement != wanted && i < STATEMENTS_SEARCHED; i++) {
        statement = qp_sqlite.next_stmt(db, statement);
    }
    return statement == wanted;
}

/* The program closes a connection. SQLite keeps it alive, and would go on to tell of it, while a
 * statement of it is not finished: what that has done is read now, and the trace taken off. */
static void connection_closed(tracker *t)
{
    for (int i = 0; i < RUNNING; i++) {
        running_statement *r = &t->running[i];
        if (r->statement && r->execution && has_statement(t->db, r->statement)) {
            qp_counters counters = {0};
            read_counters(t, r, &counters);
            keep_orphan(&r->key, &counters);
        }
    }
    qp_sqlite.trace_v2(t->db, 0, NULL, NULL);
    release_tracker(t);
}

static int on_trace(unsigned event, void *context, void *subject, void *Py_UNUSED(detail))
{
    tracker *t = context;
    if (event == QP_TRACE_CLOSE) {
        connection_closed(t);
    } else if (state.counting && event == QP_TRACE_STMT) {
        statement_started(t, subject);
    } else if (state.counting && event == QP_TRACE_PROFILE) {
        statement_ended(t, subject);
    }
    return 0;
}

static bool trace(void *db)
{
    tracker *t = take_tracker(db);
    if (t) {
        qp_sqlite.trace_v2(db, QP_TRACE_STMT | QP_TRACE_PROFILE | QP_TRACE_CLOSE, on_trace, t);
    }
    return t != NULL;
}

/* SQLite calls this for every connection that is opened. */
static int on_open(void *db, char **Py_UNUSED(error), const void *Py_UNUSED(api))
{
    if (state.counting && !qp_here.muted) {
        trace(db);
    }
    return 0;
}

const char *qp_counters_start(const char *library)
{
    const char *reason = qp_sqlite_find(library);
    if (reason) {
        return reason;
    }
    if (!state.lock) {
        state.lock = PyThread_allocate_lock();
    }
    if (!state.trackers) {
        state.trackers = qp_allocate(TRACKERS, sizeof *state.trackers);
    }
    if (!state.lock || !state.trackers) {
        return "not enough memory";
    }
    state.counting = true;
    if (qp_sqlite.auto_extension((void (*)(void))on_open) != 0) {
        state.counting = false;
        return "SQLite refused the hook for new connections";
    }
    return NULL;
}

void qp_counters_stop(void)
{
    if (state.counting) {
        state.counting = false;
        qp_sqlite.cancel_auto_extension((void (*)(void))on_open);
    }
}

static int find_module(PyObject *visited, void *found)
{
    if (PyModule_Check(visited)) {
        *(bool *)found = true;
    }
    return 0;
}

/* A sqlite3.Connection refers to its module only from the callbacks that a program has set
 * (trace, progress, authorizer); which of them it is cannot be told. */
static bool has_callback(PyObject *connection)
{
    bool found = false;
    traverseproc traverse = Py_TYPE(connection)->tp_traverse;
    if (traverse) {
        traverse(connection, find_module, &found);
    }
    return found;
}

const char *qp_counters_attach(PyObject *connection)
{
    void *db;
    if (!state.counting) {
        return "counters are off";
    }
    const char *reason = qp_sqlite_connection(connection, &db);
    if (reason) {
        return reason;
    }
    if (is_tracked(db)) {
        return NULL;
    }
    if (has_callback(connection)) {
        return "the program has set a callback of its own";
    }
    bool traced;
    /* SQLite takes the connection's mutex, whose holder may be waiting for the GIL. */
    Py_BEGIN_ALLOW_THREADS traced = trace(db);
    Py_END_ALLOW_THREADS return traced ? NULL : "too many connections are open";
}

/* The statement may be gone after the call: it is read only if the connection still has it. */
static void read_many(tracker *t, qp_meter *meter)
{
    void *mutex = qp_sqlite.db_mutex(t->db);
    qp_sqlite.mutex_enter(mutex);
    running_statement *r = NULL;
    for (int i = 0; i < RUNNING; i++) {
        if (t->running[i].statement && t->running[i].execution == meter->execution) {
            r = &t->running[i];
        }
    }
    if (r) {
        if (has_statement(t->db, r->statement)) {
            read_counters(t, r, counters_of(meter));
        } else {
            meter->touched = false; /* unknown, not too small */
            r->statement = NULL;
        }
    }
    qp_sqlite.trace_v2(t->db, QP_TRACE_STMT | QP_TRACE_PROFILE | QP_TRACE_CLOSE, on_trace, t);
    qp_sqlite.mutex_leave(mutex);
}

void qp_meter_finish(qp_meter *meter)
{
    tracker *t = meter->tracker;
    if (t && t->db) {
        Py_BEGIN_ALLOW_THREADS read_many(t, meter);
        Py_END_ALLOW_THREADS
    }
}

void qp_orphans_collect(void)
{
    static orphan taken[ORPHANS]; /* filled and emptied under the GIL */
    if (!qp_orphans_waiting) {
        return;
    }
    PyThread_acquire_lock(state.lock, WAIT_LOCK);
    int count = state.orphan_count;
    memcpy(taken, state.orphans, (size_t)count * sizeof *taken);
    state.orphan_count = 0;
    qp_orphans_waiting = false;
    PyThread_release_lock(state.lock);
    for (int i = 0; i < count; i++) {
        taken[i].key.path = qp_path_checked(taken[i].key.path);
        qp_aggregate_count(qp_aggregate_of(&taken[i].key), &taken[i].counters);
    }
}

uint64_t qp_counters_lost(void)
{
    return state.lost;
}

void qp_counters_after_fork(void)
{
    if (state.lock) {
        state.lock = PyThread_allocate_lock(); /* the old one may be held by a lost thread */
    }
    state.orphan_count = 0;
    qp_orphans_waiting = false;
    state.lost = 0;
}
