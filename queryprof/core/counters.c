#include "counters.h"

#include <string.h>

#include "allocation.h"
#include "compiler.h"
#include "orphans.h"
#include "sqlite_library.h"
#include "statement_objects.h"
#include "thread_local.h"
#include "trackers.h"

enum { VM_STEPS, FULL_SCAN_STEPS, SORTS, AUTOMATIC_INDEXES, REPREPARES };

static const int counter_codes[QP_COUNTERS] = {
    [VM_STEPS] = QP_STMTSTATUS_VM_STEP,     [FULL_SCAN_STEPS] = QP_STMTSTATUS_FULLSCAN_STEP,
    [SORTS] = QP_STMTSTATUS_SORT,           [AUTOMATIC_INDEXES] = QP_STMTSTATUS_AUTOINDEX,
    [REPREPARES] = QP_STMTSTATUS_REPREPARE,
};

static struct {
    volatile bool counting;
    volatile bool counting_private; /* also in the SQLite that a driver has for itself */
    uint32_t epoch;
} state;

static uint32_t page_fetches(const qp_tracker *t)
{
    int hits = 0, misses = 0, peak;
    t->sqlite->db_status(t->db, QP_DBSTATUS_CACHE_HIT, &hits, &peak, 0);
    t->sqlite->db_status(t->db, QP_DBSTATUS_CACHE_MISS, &misses, &peak, 0);
    return (uint32_t)hits + (uint32_t)misses;
}

static inline bool same_key(const qp_key *a, const qp_key *b)
{
    return !memcmp(a, b, sizeof *a);
}

/* What a statement did since the last reading; from here it counts anew. */
static qp_counters read_counters(qp_tracker *t, qp_counted_statement *s)
{
    uint32_t done[QP_COUNTERS];
    for (int i = 0; i < QP_COUNTERS; i++) {
        uint32_t now = (uint32_t)t->sqlite->stmt_status(s->statement, counter_codes[i], 0);
        done[i] = now - s->base[i];
        s->base[i] = now;
    }
    t->reprepared = t->reprepared || done[REPREPARES];
    qp_counters counters = {
        .vm_steps = done[VM_STEPS],
        .full_scan_steps = done[FULL_SCAN_STEPS],
        .sorts = done[SORTS],
        .automatic_indexes = done[AUTOMATIC_INDEXES],
        .reprepares = done[REPREPARES],
        .page_fetches = s->page_fetches,
        .counted = s->executions,
        .page_fetch_samples = s->page_fetch_samples,
    };
    s->executions = s->page_fetches = s->page_fetch_samples = 0;
    return counters;
}

/* Reads counters where there is no GIL: they wait for the next probed call. */
static void read_into_orphans(qp_tracker *t, qp_counted_statement *s)
{
    qp_counters counters = read_counters(t, s);
    qp_orphan_keep(&s->key, &counters);
}

/* Ends the counting of page fetches. While the statement has rows to give, others' fetches would
 * be taken for its own; `over` says that this run of it has ended. */
static void end_sample(qp_tracker *t, bool over)
{
    qp_counted_statement *s = t->sampled;
    t->sampled = NULL;
    if (s && (over || !t->sqlite->stmt_busy(s->statement))) {
        s->page_fetches += (page_fetches(t) - t->pages_at_start) & 0x7fffffff;
        s->page_fetch_samples++;
    }
}

/* A place for a statement that is not known; who makes room is read. */
static qp_counted_statement *place_statement(qp_tracker *t, void *statement, const qp_meter *meter)
{
    qp_counted_statement *set = qp_tracker_set(t, statement);
    qp_counted_statement *s = &set[t->evictions % QP_TRACKER_WAYS];
    for (int way = 0; way < QP_TRACKER_WAYS; way++) {
        if (!set[way].statement) {
            s = &set[way];
            break;
        }
    }
    if (s->statement && !s->transient) {
        read_into_orphans(t, s);
        t->evictions++;
    }
    *s = (qp_counted_statement){
        .statement = statement, .transient = meter->drops, .key = meter->key};
    for (int i = 0; i < QP_COUNTERS; i++) {
        s->base[i] = (uint32_t)t->sqlite->stmt_status(statement, counter_codes[i], 0);
    }
    return s;
}

/* The driver prepares, runs and drops a BEGIN by itself: it must not be read later. */
static bool begins_transaction(const qp_tracker *t, void *statement)
{
    const char *sql = t->sqlite->sql(statement);
    return sql && !strncmp(sql, "BEGIN", 5);
}

/* Drops what an earlier recording, or a parent process, has left. */
static void renew(qp_tracker *t)
{
    t->epoch = state.epoch;
    t->last = t->sampled = NULL;
    memset(t->statements, 0, sizeof t->statements);
}

static QP_COLD void statement_started(qp_tracker *t, void *statement)
{
    qp_meter *meter = qp_here.meter;
    if (meter && meter->main) {
        return; /* the next row of an executemany, a trigger, or a statement inside another */
    }
    if (t->epoch != state.epoch) {
        renew(t);
    }
    qp_counted_statement *s = qp_tracker_find(t, statement);
    if (t->sampled) {
        end_sample(t, t->sampled == s);
    }
    if (s && s->transient) { /* another was at this address, and its end was not told */
        s->statement = NULL;
        s = NULL;
    }
    if (!meter || !meter->counts) { /* what it does now is nobody's */
        if (s) {
            read_into_orphans(t, s);
            s->statement = NULL;
        }
        return;
    }
    if (!s) {
        if (!meter->drops && begins_transaction(t, statement)) {
            return;
        }
        s = place_statement(t, statement, meter);
    } else if (!same_key(&s->key, &meter->key)) {
        read_into_orphans(t, s);
        s->key = meter->key;
    }
    t->last = s;
    s->executions += !meter->counted;
    meter->counted = true;
    meter->main = statement;
    if (meter->explanation) {
        qp_explain(meter->explanation, t->db, statement);
        meter->explanation = NULL;
    }
    if (meter->sampled && (!s->transient || t->is_told)) {
        t->sampled = s;
        t->pages_at_start = page_fetches(t);
    }
}

static QP_COLD void statement_ended(qp_tracker *t, void *statement)
{
    qp_meter *meter = qp_here.meter;
    qp_counted_statement *s = t->epoch == state.epoch ? qp_tracker_find(t, statement) : NULL;
    if (s) {
        if (t->sampled == s) {
            end_sample(t, true);
        }
        read_into_orphans(t, s);
        s->statement = NULL;
    }
    if (meter && meter->main == statement) {
        meter->main = NULL;
    }
}

/* The program closes a connection. SQLite keeps it alive, and would go on to tell of it, while a
 * statement of it is not finished: what that has done is read now, and the trace taken off. */
static QP_COLD void connection_closed(qp_tracker *t)
{
    if (state.counting && t->epoch == state.epoch) {
        end_sample(t, true);
        for (int i = 0; i < QP_TRACKER_STATEMENTS; i++) {
            qp_counted_statement *s = &t->statements[i];
            if (s->statement && !s->transient) {
                read_into_orphans(t, s);
            }
        }
    }
    t->sqlite->trace_v2(t->db, 0, NULL, NULL);
    qp_tracker_release(t);
}

/* Whether a statement starts again for whom it last worked: a loop over one statement. */
static inline bool starts_again(const qp_tracker *t, const void *statement)
{
    const qp_meter *meter = qp_here.meter;
    const qp_counted_statement *s = t->last;
    return meter && !meter->main && s && s->statement == statement && !s->transient &&
           same_key(&s->key, &meter->key) && meter->counts && !meter->sampled && !t->sampled &&
           !meter->explanation && t->epoch == state.epoch;
}

static int on_trace(unsigned event, void *context, void *subject, void *Py_UNUSED(detail))
{
    qp_tracker *t = context;
    if (event == QP_TRACE_STMT) {
        if (starts_again(t, subject)) {
            t->last->executions += !qp_here.meter->counted;
            qp_here.meter->counted = true;
            qp_here.meter->main = subject;
        } else if (state.counting) {
            statement_started(t, subject);
        }
    } else if (event == QP_TRACE_PROFILE && state.counting) {
        statement_ended(t, subject);
    } else if (event == QP_TRACE_CLOSE) {
        connection_closed(t);
    }
    return 0;
}

/* Takes a connection's events; false: there are too many connections, or SQLite was built without
 * mutexes, and a statement could be gone while another thread reads it. */
static bool trace(void *db, const qp_sqlite_functions *sqlite, bool is_told)
{
    qp_tracker *t = sqlite->db_mutex(db) ? qp_tracker_take(db, state.epoch) : NULL;
    if (t) {
        t->sqlite = sqlite;
        t->is_told = is_told;
        unsigned ends = is_told ? QP_TRACE_PROFILE : 0;
        sqlite->trace_v2(db, QP_TRACE_STMT | QP_TRACE_CLOSE | ends, on_trace, t);
    }
    return t != NULL;
}

/* SQLite calls this for every connection that is opened. Another driver may share the library with
 * sqlite3 (Debian's APSW does), and hold no statement objects: it opens it in a call of its own. */
static int on_open(void *db, char **Py_UNUSED(error), const void *Py_UNUSED(api))
{
    if (state.counting && !qp_here.muted) {
        trace(db, &qp_sqlite, qp_here.meter && qp_here.meter->drops);
    }
    return 0;
}

/* The same of a driver with a SQLite of its own. */
static int on_open_private(void *db, char **Py_UNUSED(error), const void *Py_UNUSED(api))
{
    if (state.counting && state.counting_private && !qp_here.muted) {
        trace(db, &qp_private_sqlite, true);
    }
    return 0;
}

/* Reads a statement that is about to be gone; with its connection's mutex. */
static void read_last(qp_tracker *t, const void *db, const void *statement)
{
    bool ours = state.counting && t->db == db && t->epoch == state.epoch;
    qp_counted_statement *s = ours ? qp_tracker_find(t, statement) : NULL;
    if (s) {
        if (t->sampled == s) {
            end_sample(t, true);
        }
        read_into_orphans(t, s);
        s->statement = NULL;
    }
}

/* Reads the counters of a statement (sqlite3_stmt *) that is about to be gone; with the GIL. */
static void statement_ends(void *statement)
{
    if (!state.counting) {
        return;
    }
    void *db = qp_sqlite.db_handle(statement); /* alive as long as its statement is */
    qp_tracker *t = qp_tracker_of(db);
    if (!t) {
        return;
    }
    void *mutex = qp_sqlite.db_mutex(db);
    if (qp_sqlite.mutex_try(mutex) == 0) {
        read_last(t, db, statement);
        qp_sqlite.mutex_leave(mutex);
    } else {
        /* The mutex and the GIL are never waited for while the other one is held: the driver waits
         * for the mutex with the GIL (sqlite3_column_name). */
        PyThreadState *released = PyEval_SaveThread();
        qp_sqlite.mutex_enter(mutex);
        read_last(t, db, statement);
        qp_sqlite.mutex_leave(mutex);
        PyEval_RestoreThread(released);
    }
    qp_orphans_collect();
}

const char *qp_counters_start(const char *library, PyObject *connection)
{
    const char *reason = qp_sqlite_find(library);
    if (!reason && (!qp_orphans_start() || !qp_trackers_start())) {
        reason = "not enough memory";
    }
    if (!reason) {
        reason = qp_statement_objects_watch(connection, statement_ends);
    }
    if (reason) {
        return reason;
    }
    state.epoch++;
    state.counting = true;
    if (qp_sqlite.auto_extension((void (*)(void))on_open) != 0) {
        qp_counters_stop();
        return "SQLite refused the hook for new connections";
    }
    return NULL;
}

void qp_counters_stop(void)
{
    qp_counters_stop_private();
    if (state.counting) {
        qp_counters_settle();
        state.counting = false;
        qp_sqlite.cancel_auto_extension((void (*)(void))on_open);
        qp_statement_objects_unwatch();
    }
}

const char *qp_counters_start_private(void)
{
    if (!state.counting) {
        return "counters are off";
    }
    if (!qp_private_sqlite.trace_v2) {
        return "the driver's SQLite loads no extensions";
    }
    if (qp_private_sqlite.trace_v2 == qp_sqlite.trace_v2) {
        return NULL; /* it is not private: see on_open */
    }
    if (qp_private_sqlite.auto_extension((void (*)(void))on_open_private) != 0) {
        return "SQLite refused the hook for new connections";
    }
    state.counting_private = true;
    return NULL;
}

void qp_counters_stop_private(void)
{
    if (state.counting_private) {
        state.counting_private = false;
        qp_private_sqlite.cancel_auto_extension((void (*)(void))on_open_private);
    }
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
    if (qp_connection_has_callback(connection)) {
        return "the program has set a callback of its own";
    }
    bool traced;
    /* SQLite takes the connection's mutex, whose holder may be waiting for the GIL. */
    Py_BEGIN_ALLOW_THREADS traced = trace(db, &qp_sqlite, false);
    Py_END_ALLOW_THREADS if (traced)
    {
        qp_tracker *t = qp_tracker_of(db);
        if (t) { /* what is in it was made before */
            qp_schema_note(&t->schema, QP_SCHEMA_UNKNOWN, 0);
        }
    }
    return traced ? NULL : "too many connections are open";
}

qp_tracker *qp_counters_tracker(PyObject *connection)
{
    qp_tracker *t = state.counting ? qp_tracker_of(qp_connection_db(connection)) : NULL;
    return t && !qp_connection_has_callback(connection) ? t : NULL;
}

bool qp_counters_explained(qp_tracker *t, const qp_explanation *explanation)
{
    /* A statement that is among the tracker's has not gone: see read_last. */
    void *mutex = t->db ? t->sqlite->db_mutex(t->db) : NULL;
    if (!mutex || t->sqlite->mutex_try(mutex) != 0) {
        return false;
    }
    const qp_counted_statement *s = qp_tracker_find(t, explanation->statement);
    bool same =
        s && !s->transient &&
        t->sqlite->stmt_status(s->statement, QP_STMTSTATUS_REPREPARE, 0) == explanation->reprepares;
    t->sqlite->mutex_leave(mutex);
    return same;
}

bool qp_counters_tell_ends(PyObject *connection, bool ends)
{
    qp_tracker *t = qp_counters_tracker(connection);
    if (!t) {
        return false; /* a callback of the program may have taken the place of ours */
    }
    /* The caller has the GIL, for which the mutex's holder may be waiting: never wait for it. */
    void *mutex = t->sqlite->db_mutex(t->db);
    if (t->sqlite->mutex_try(mutex) != 0) {
        return false;
    }
    if (ends) {
        t->tellers++;
    } else if (t->tellers) {
        t->tellers--;
    }
    unsigned events = QP_TRACE_STMT | QP_TRACE_CLOSE | (t->tellers ? QP_TRACE_PROFILE : 0);
    t->sqlite->trace_v2(t->db, events, on_trace, t);
    t->sqlite->mutex_leave(mutex);
    return true;
}

/* The connection, or NULL when it has no statement object that keeps it alive. With the GIL no
 * statement object goes, and before it goes it is taken out. */
static void *living_connection(const qp_tracker *t)
{
    for (int i = 0; i < QP_TRACKER_STATEMENTS; i++) {
        void *statement = t->statements[i].statement;
        if (statement && !t->statements[i].transient) {
            return t->sqlite->db_handle(statement);
        }
    }
    return NULL;
}

static void settle_tracker(qp_tracker *t)
{
    void *db = t->epoch == state.epoch ? living_connection(t) : NULL;
    /* Whoever runs something on the connection may be waiting for the GIL: try, and never wait. */
    void *mutex = db ? t->sqlite->db_mutex(db) : NULL;
    if (!mutex || t->sqlite->mutex_try(mutex) != 0) {
        return;
    }
    if (t->sampled && !t->sqlite->stmt_busy(t->sampled->statement)) {
        end_sample(t, true);
    }
    for (int i = 0; i < QP_TRACKER_STATEMENTS; i++) {
        qp_counted_statement *s = &t->statements[i];
        if (s->statement && !s->transient) {
            qp_counters counters = read_counters(t, s);
            qp_counters_add_to(s->key, &counters);
        }
    }
    t->sqlite->mutex_leave(mutex);
}

void qp_counters_settle(void)
{
    if (state.counting) {
        qp_trackers_visit(settle_tracker);
    }
}

void qp_counters_after_fork(void)
{
    qp_orphans_after_fork();
    qp_trackers_after_fork();
    state.epoch++;
}
