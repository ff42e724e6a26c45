#include "counters/counters.h"

#include <stdatomic.h>
#include <string.h>

#include "counters/connections.h"
#include "counters/locks.h"
#include "counters/pending_counters.h"
#include "counters/readings.h"
#include "counters/vfs.h"
#include "runtime/assertion.h"
#include "runtime/clock.h"
#include "runtime/exception.h"
#include "runtime/recording.h"
#include "runtime/thread_local.h"
#include "sqlite/changes_value.h"
#include "sqlite/library.h"
#include "sqlite/statement_objects.h"

static bool files_are_watched;
static _Atomic uint64_t unseen_files; /* connections whose file work is not seen */

static void watch_files(const qp_sqlite_functions *sqlite, void *db)
{
    unseen_files += files_are_watched && !qp_vfs_watch_connection(sqlite, db);
}

uint64_t qp_connections_with_own_vfs(void)
{
    return unseen_files;
}

/* SQLite calls this for every opened connection. Another driver without statement objects may share
 * the library with sqlite3, as Debian's APSW does. The call in progress shows which driver opens
 * the connection. */
static int on_open(void *db, char **Py_UNUSED(error), const void *Py_UNUSED(api))
{
    if (qp_counting.is_on && !qp_here.muted) {
        watch_files(&qp_sqlite, db);
        const qp_meter *meter = qp_meter_here();
        qp_trace_connection(db, &qp_sqlite, meter && meter->drops);
    }
    return 0;
}

static struct {
    const qp_sqlite_functions *counted[QP_PRIVATE_LIBRARIES]; /* libraries that call
                                                               * on_open_private */
    volatile int count;
} private;

/* Like on_open, for drivers with a private SQLite. */
static int on_open_private(void *db, char **Py_UNUSED(error), const void *api)
{
    const qp_sqlite_functions *sqlite = private.count ? qp_sqlite_of_api_table(api) : NULL;
    if (sqlite && qp_counting.is_on && !qp_here.muted) {
        watch_files(sqlite, db);
        qp_trace_connection(db, sqlite, true);
    }
    return 0;
}

/* Makes a counted statement from the facts stored in a call. Its `statement` is NULL if the call's
 * recording has ended. */
static qp_counted_statement make_counted_statement(const qp_active_call *call)
{
    const qp_meter *meter = call->meter;
    qp_counted_statement s = {0};
    if (meter) {
        s.statement = call->statement;
        s.key = meter->key;
        s.is_whole = meter->is_whole;
        s.executions = call->begins_counting;
        memcpy(s.base, call->base, sizeof s.base);
    }
    return s;
}

/* Reads the counters of a statement that is about to be finalized. The caller must hold the
 * connection's mutex. */
static void read_final_counters(qp_traced_connection *t, const void *db, const void *statement)
{
    bool ours = qp_counting.is_on && t->db == db && t->epoch == qp_counting.epoch;
    qp_counted_statement *s = ours ? qp_traced_find_statement(t, statement) : NULL;
    qp_active_call *call = ours && !s ? qp_call_that_started(statement) : NULL;
    if (call) { /* the statement of a call in progress, which the driver does not keep */
        qp_counted_statement last = make_counted_statement(call);
        if (last.statement) {
            qp_traced_keep_counters(t, &last);
        }
        call->statement = NULL;
    }
    if (s) {
        if (t->sampled == s) {
            qp_traced_end_page_count(t, true);
        }
        qp_traced_keep_counters(t, s);
        qp_traced_clear_slot(s);
    }
}

static void end_statement(void *statement)
{
    void *db = qp_sqlite.db_handle(statement); /* the connection exists as long as its statement */
    qp_traced_connection *t = qp_traced_connection_of(db);
    if (!t) {
        return;
    }
    void *mutex = qp_sqlite.db_mutex(db);
    if (qp_sqlite.mutex_try(mutex) == 0) {
        read_final_counters(t, db, statement);
        qp_sqlite.mutex_leave(mutex);
    } else {
        /* Never wait for the mutex while holding the GIL, or for the GIL while holding the mutex.
         * The driver may wait for the mutex with the GIL (in sqlite3_column_name). */
        PyThreadState *released = PyEval_SaveThread();
        qp_sqlite.mutex_enter(mutex);
        read_final_counters(t, db, statement);
        qp_sqlite.mutex_leave(mutex);
        PyEval_RestoreThread(released);
    }
    if (qp_pending_counters_due) {
        qp_pending_counters_collect();
    }
}

/* Reads the counters of a statement (sqlite3_stmt *) that is about to be finalized. The caller must
 * hold the GIL. */
static void on_statement_finalize(void *statement)
{
    static uint32_t countdown = QP_OWN_SAMPLING; /* the same sampling as for calls */
    if (!qp_counting.is_on) {
        return;
    }
    if (--countdown) {
        end_statement(statement);
        return;
    }
    countdown = QP_OWN_SAMPLING;
    qp_own_part part = qp_own_part_begin();
    end_statement(statement);
    qp_own_part_end(&qp_own_counters, part, qp_clock_ticks());
}

const char *qp_file_work_unknown_reason(void)
{
    return files_are_watched ? NULL : "the file functions of SQLite's VFS are not its own";
}

const char *qp_counters_start(const char *library, PyObject *connection)
{
    const char *reason = qp_sqlite_find(library);
    if (!reason && !qp_traced_connections_start()) {
        reason = "not enough memory";
    }
    if (!reason) {
        reason = qp_statement_objects_watch(connection, on_statement_finalize);
    }
    if (reason) {
        return reason;
    }
    qp_changes_value_find(qp_connection_db(connection));
    qp_counting.epoch++;
    qp_counting.is_on = true;
    if (qp_sqlite.auto_extension((void (*)(void))on_open) != 0) {
        qp_counters_stop();
        return "SQLite refused the hook for new connections";
    }
    files_are_watched = qp_vfs_watch(&qp_sqlite);
    unseen_files = 0;
    return NULL;
}

void qp_counters_stop(void)
{
    while (private.count) {
        private.counted[--private.count]->cancel_auto_extension((void (*)(void))on_open_private);
    }
    if (qp_counting.is_on) {
        qp_counters_flush();
        qp_counting.is_on = false;
        qp_vfs_unwatch();
        files_are_watched = false;
        qp_sqlite.cancel_auto_extension((void (*)(void))on_open);
        qp_statement_objects_unwatch();
    }
}

const char *qp_counters_start_private(void)
{
    if (!qp_counting.is_on) {
        return "they need the counters of sqlite3, which are off";
    }
    const qp_sqlite_functions *loaded = qp_sqlite_that_loaded_core();
    if (!loaded || private.count == QP_PRIVATE_LIBRARIES) {
        return "the driver's SQLite loads no extensions";
    }
    if (loaded->trace_v2 == qp_sqlite.trace_v2) {
        return NULL; /* the SQLite is not private: on_open counts it */
    }
    for (int i = 0; i < private.count; i++) {
        if (private.counted[i] == loaded) {
            return NULL; /* two drivers share this SQLite */
        }
    }
    if (loaded->auto_extension((void (*)(void))on_open_private) != 0) {
        return "SQLite refused the hook for new connections";
    }
    private.counted[private.count++] = loaded;
    qp_vfs_watch(loaded);
    return NULL;
}

void qp_counters_attach_connection(PyObject *connection)
{
    void *db = qp_counting.is_on ? qp_connection_db(connection) : NULL;
    qp_traced_connection *t = db ? qp_traced_connection_of(db) : NULL;
    if (!db || (t && t->epoch == qp_counting.epoch) || qp_connection_has_callback(connection)) {
        return;
    }
    /* The driver clears the connection's db with the GIL held before it closes the connection, so
     * the connection is open. The mutex's holder may be waiting for the GIL: try, and never
     * wait. */
    void *mutex = qp_sqlite_find_db(connection, &db) ? NULL : qp_sqlite.db_mutex(db);
    if (!mutex || qp_sqlite.mutex_try(mutex) != 0) {
        return;
    }
    t = qp_trace_connection(db, &qp_sqlite, false);
    if (t) {
        watch_files(&qp_sqlite, db);
        qp_schema_apply_change(&t->schema, QP_SCHEMA_UNKNOWN,
                               0); /* the schema was created before */
    }
    qp_sqlite.mutex_leave(mutex);
}

/* Adds the statement of a statement object to the counted statements. The caller must hold the
 * connection's mutex. */
static void add_owned_statement(qp_traced_connection *t, const qp_active_call *call)
{
    if (t->db != call->db || t->epoch != qp_counting.epoch ||
        qp_traced_find_statement(t, call->statement)) {
        return;
    }
    const qp_counted_statement counted = make_counted_statement(call);
    if (!counted.statement) {
        return;
    }
    qp_counted_statement *s =
        qp_traced_reserve_statement(t, counted.statement, &counted.key, false);
    *s = counted;
    s->held = s->statement;
    t->last = s;
    if (t->unproved == s->statement) {
        t->sampled = s;
        t->is_further_row = false;
        t->pages_at_start = call->pages_at_start;
    }
}

void qp_counters_identify_statement(PyObject *connection, PyObject *cursor,
                                    const qp_active_call *call)
{
    const void *db = qp_connection_db(connection);
    qp_traced_connection *t =
        qp_counting.is_on && db == call->db ? qp_traced_connection_of(db) : NULL;
    PyObject *object = t ? qp_statement_object(connection, cursor, call->statement) : NULL;
    if (!object) {
        return; /* the driver does not own the statement, or another thread has closed the
                 * connection */
    }
    QP_ASSERT(t->sqlite->db_handle(call->statement) == t->db);
    void *mutex = t->sqlite->db_mutex(t->db);
    if (t->sqlite->mutex_try(mutex) == 0) {
        add_owned_statement(t, call);
        t->sqlite->mutex_leave(mutex);
        return;
    }
    /* Release the GIL to wait, as in end_statement. The reference keeps the statement, which keeps
     * the connection's mutex. */
    qp_exception exception = qp_exception_take();
    Py_INCREF(object);
    PyThreadState *released = PyEval_SaveThread();
    t->sqlite->mutex_enter(mutex);
    add_owned_statement(t, call);
    t->sqlite->mutex_leave(mutex);
    PyEval_RestoreThread(released);
    Py_DECREF(object);
    qp_exception_put_back(&exception);
}

bool qp_connection_is_counted(PyObject *connection)
{
    return qp_counting.is_on && qp_traced_connection_of(qp_connection_db(connection));
}

qp_traced_connection *qp_counted_connection(PyObject *connection)
{
    qp_traced_connection *t =
        qp_counting.is_on ? qp_traced_connection_of(qp_connection_db(connection)) : NULL;
    return t && !qp_connection_has_callback(connection) ? t : NULL;
}

bool qp_plan_was_used(qp_traced_connection *t, const qp_explanation *explanation)
{
    /* A statement in the record is not finalized, because read_final_counters removes it first. */
    void *mutex = t->db ? t->sqlite->db_mutex(t->db) : NULL;
    if (!mutex || t->sqlite->mutex_try(mutex) != 0) {
        return false;
    }
    const qp_counted_statement *s = qp_traced_find_statement(t, explanation->statement);
    bool same =
        s && !s->transient &&
        t->sqlite->stmt_status(s->statement, QP_STMTSTATUS_REPREPARE, 0) == explanation->reprepares;
    t->sqlite->mutex_leave(mutex);
    return same;
}

bool qp_counters_trace_statement_ends(PyObject *connection, bool ends)
{
    qp_traced_connection *t = qp_counted_connection(connection);
    if (!t) {
        return false; /* a callback of the program may have replaced ours */
    }
    t->watchers += ends ? 1 : t->watchers ? -1u : 0;
    /* The caller holds the GIL, and the mutex's holder may be waiting for the GIL: blocking on the
     * mutex could deadlock. If the mutex is taken, the next end of a statement stops the trace of
     * ends. */
    void *mutex = t->sqlite->db_mutex(t->db);
    if (t->sqlite->mutex_try(mutex) != 0) {
        t->watchers -= ends;
        return false;
    }
    qp_trace_renew_events(t);
    t->sqlite->mutex_leave(mutex);
    return true;
}

void qp_counters_after_fork(void)
{
    qp_pending_counters_after_fork();
    unseen_files = 0;
    qp_locks_after_fork();
    qp_traced_connections_after_fork();
    qp_counting.epoch++;
}
