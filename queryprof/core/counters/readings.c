#include "counters/readings.h"

#include "counters/connections.h"
#include "counters/pending_counters.h"
#include "counters/statement_events.h"
#include "sqlite/library.h"

/* Returns the connection, or NULL if no statement object keeps the connection alive. A statement
 * object is not deallocated while the GIL is held, and its statement leaves the record before the
 * deallocation. */
static void *living_connection(const qp_traced_connection *t)
{
    void *statement = qp_traced_owned_statement(t);
    return statement ? t->sqlite->db_handle(statement) : NULL;
}

static void settle_statement(qp_traced_connection *t, qp_counted_statement *s)
{
    if (!s->transient) {
        qp_counters counters = qp_traced_take_counters(t, s);
        qp_counters_add_to_key(s->key, &counters);
    }
}

/* Takes and returns the mutex of a connection; NULL if the connection is busy, or may have been
 * freed. */
static void *take_mutex(const qp_traced_connection *t)
{
    void *db = t->epoch == qp_counting.epoch ? living_connection(t) : NULL;
    /* The mutex's holder may be waiting for the GIL: try, and never wait. */
    void *mutex = db ? t->sqlite->db_mutex(db) : NULL;
    return mutex && t->sqlite->mutex_try(mutex) == 0 ? mutex : NULL;
}

static void settle_connection(qp_traced_connection *t)
{
    void *mutex = take_mutex(t);
    if (!mutex) {
        return;
    }
    if (t->sampled && !t->sqlite->stmt_busy(t->sampled->statement)) {
        qp_traced_end_page_count(t, true);
    }
    qp_traced_for_each_statement(t, settle_statement);
    t->sqlite->mutex_leave(mutex);
}

void qp_counters_flush(void)
{
    if (qp_counting.is_on) {
        qp_traced_connections_visit(settle_connection);
    }
}

static void (*note_key)(const qp_key *key);

static void visit_if_running(qp_traced_connection *t, qp_counted_statement *s)
{
    if (!s->transient && t->sqlite->stmt_busy(s->statement)) {
        note_key(&s->key);
    }
}

/* Without the mutex, the key may be a mixture of two keys, which then matches neither statement. */
static void visit_if_key_exists(qp_traced_connection *Py_UNUSED(t), qp_counted_statement *s)
{
    if (s->held) {
        qp_key key = s->key;
        note_key(&key);
    }
}

static void visit_running(qp_traced_connection *t)
{
    void *mutex = take_mutex(t);
    qp_traced_for_each_statement(t, mutex ? visit_if_running : visit_if_key_exists);
    if (mutex) {
        t->sqlite->mutex_leave(mutex);
    }
}

void qp_counters_visit_running(void (*note)(const qp_key *key))
{
    note_key = note;
    if (qp_counting.is_on) {
        qp_traced_connections_visit(visit_running);
    }
}
