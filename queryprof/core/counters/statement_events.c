#include "counters/statement_events.h"

#include "runtime/allocation.h"
#include "runtime/assertion.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/thread_local.h"
#include "sqlite/library.h"
#include "threads/threads.h"

struct qp_counting qp_counting;

/* Returns the UTF-8 of a str that the driver made for SQLite (borrowed), without the GIL. The str
 * is immutable, and the driver's caller keeps it. NULL if the str has no UTF-8 yet. */
static const char *utf8_of(PyObject *text, size_t *length)
{
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        *length = (size_t)PyUnicode_GET_LENGTH(text);
        return (const char *)((PyASCIIObject *)text + 1);
    }
    const PyCompactUnicodeObject *compact = (PyCompactUnicodeObject *)text;
    *length = (size_t)compact->utf8_length;
    return compact->utf8;
}

/* Skips the space, semicolons and comments between statements. */
static size_t skip_blanks(const char *text, size_t at, size_t length)
{
    for (; at < length; at++) {
        bool more = at + 1 < length;
        if (more && text[at] == '-' && text[at + 1] == '-') {
            while (at < length && text[at] != '\n') {
                at++;
            }
        } else if (more && text[at] == '/' && text[at + 1] == '*') {
            at += 3;
            while (at < length && !(text[at - 1] == '*' && text[at] == '/')) {
                at++;
            }
        } else if (text[at] != ';' && !Py_ISSPACE(text[at])) {
            return at;
        }
    }
    return length;
}

/* Returns whether a statement is the next part of the text that the program passed to the driver,
 * and accepts that part. False for the driver's own BEGIN, and for statements of a virtual
 * table. */
static bool accept_if_next_part(const qp_active_call *call, qp_meter *meter, const char *sql)
{
    size_t length;
    bool is_text = sql && call->sql && PyUnicode_Check(call->sql);
    const char *text = is_text ? utf8_of(call->sql, &length) : NULL;
    size_t taken = text ? strlen(sql) : 0;
    size_t at = meter->accepted;
    if (!text || taken > length - at || memcmp(text + at, sql, taken) != 0) {
        return false;
    }
    at += taken;
    meter->accepted = at < UINT32_MAX ? (uint32_t)at : 0;
    meter->is_whole = skip_blanks(text, at, length) == length;
    return true;
}

static inline qp_meter *innermost_meter(void)
{
    const qp_thread *thread = qp_here.thread;
    const qp_active_call *active = thread ? thread->active : NULL;
    return active ? active->meter : NULL;
}

/* Returns the call whose statement may start here, and sets `*meter`; NULL if no call fits.
 * `*is_inside` is set if the statement is a part of another statement, or runs inside one. Calls of
 * other greenlets may also be in progress. */
static qp_active_call *call_that_starts(const qp_traced_connection *t, const void *statement,
                                        qp_meter **meter, bool *is_inside)
{
    qp_active_call *found = NULL;
    bool serves = false;
    const qp_thread *thread = qp_here.thread;
    *meter = NULL;
    for (qp_active_call *a = thread ? thread->active : NULL; a; a = a->below) {
        qp_meter *its = a->meter;
        if (its && its->main == statement) { /* the next row of an executemany */
            *is_inside = true;
            return NULL;
        }
        bool begins = its && !qp_operation_serves_rows(a->operation);
        if (!found && begins && (!a->db || a->db == t->db)) {
            found = a;
            *meter = its;
        }
        serves = serves || (its && !begins);
    }
    *is_inside = found ? (*meter)->main != NULL : serves;
    return *is_inside ? NULL : found;
}

/* Clears the state of an earlier recording, or of a parent process. */
static void clear_earlier_state(qp_traced_connection *t)
{
    t->epoch = qp_counting.epoch;
    t->last = t->sampled = NULL;
    t->unproved = NULL;
    qp_traced_forget_statements(t);
}

static QP_COLD void statement_started(qp_traced_connection *t, void *statement)
{
    bool is_inside;
    qp_meter *meter;
    qp_active_call *call = call_that_starts(t, statement, &meter, &is_inside);
    if (is_inside) {
        return;
    }
    QP_ASSERT(t->sqlite->db_handle(statement) == t->db);
    t->unproved = NULL;
    if (t->epoch != qp_counting.epoch) {
        clear_earlier_state(t);
    }
    qp_counted_statement *s = qp_traced_find_statement(t, statement);
    if (t->sampled) {
        qp_traced_end_page_count(t, t->sampled == s);
    }
    if (s && s->transient && !qp_traced_runs_again(t, s)) { /* another statement at this address */
        qp_traced_clear_slot(s);
        s = NULL;
    }
    if (!meter || !meter->counts) { /* this execution is not counted */
        if (s) {
            qp_traced_keep_counters(t, s);
            qp_traced_clear_slot(s);
        }
        return;
    }
    bool is_known = s && qp_same_key(&s->key, &meter->key);
    bool is_its_text = !is_known && accept_if_next_part(call, meter, t->sqlite->sql(statement));
    if (!meter->drops && !is_known && !is_its_text) {
        return;
    }
    if (s && !is_known) {
        if (!s->transient) { /* a transient statement was read when it ended */
            qp_traced_keep_counters(t, s);
        }
        s->key = meter->key;
    } else if (!s && meter->drops) {
        s = qp_traced_reserve_statement(t, statement, &meter->key, true);
        qp_traced_present_counters(t, statement, s->base);
    }
    if (s) {
        t->last = s->transient && !t->traces_ends ? NULL : s;
        s->executions += !meter->counted;
    } else {
        call->statement = statement;
        call->has_more = true;
        call->begins_counting = !meter->counted;
        qp_traced_present_counters(t, statement, call->base);
    }
    bool is_counted = meter->counted;
    meter->counted = true;
    meter->main = statement;
    if (is_known) {
        meter->is_whole = s->is_whole;
    } else if (s) {
        s->is_whole = meter->is_whole;
    }
    if (meter->explanation) {
        qp_explain(meter->explanation, t->db, statement);
        meter->explanation = NULL;
    }
    if (meter->sampled && !s) {
        t->unproved = statement;
        call->pages_at_start = qp_traced_page_fetches(t);
    } else if (meter->sampled && (!s->transient || t->traces_ends)) {
        t->sampled = s;
        t->is_further_row = is_counted;
        t->pages_at_start = qp_traced_page_fetches(t);
    }
}

static QP_COLD void statement_ended(qp_traced_connection *t, void *statement)
{
    qp_meter *meter = innermost_meter();
    qp_counted_statement *s =
        t->epoch == qp_counting.epoch ? qp_traced_find_statement(t, statement) : NULL;
    if (s && s->is_over) { /* another statement at this address, or an uncounted one */
        qp_traced_clear_slot(s);
        s = NULL;
    }
    if (s) {
        if (t->sampled == s) {
            qp_traced_end_page_count(t, true);
        }
        qp_traced_keep_counters(t, s);
        qp_traced_end_statement(t, s);
    }
    if (meter && meter->main == statement) {
        meter->main = NULL;
    }
    if (!t->traces_ends && !t->watchers) { /* the last call that needed the trace of ends could
                                            * not stop it */
        qp_trace_renew_events(t);
    }
}

static void read_at_close(qp_traced_connection *t, qp_counted_statement *s)
{
    if (!s->transient) {
        qp_traced_keep_counters(t, s);
    }
}

/* The program closes a connection. SQLite keeps the connection alive and would continue to trace it
 * until all its statements are finalized. So the counters are read now, and the trace is
 * removed. */
static QP_COLD void connection_closed(qp_traced_connection *t)
{
    if (qp_counting.is_on && t->epoch == qp_counting.epoch) {
        qp_traced_end_page_count(t, true);
        qp_traced_for_each_statement(t, read_at_close);
    }
    t->sqlite->trace_v2(t->db, 0, NULL, NULL);
    qp_traced_connection_release(t);
}

/* Returns whether a statement starts again for the same key, as in a loop over one statement. */
static inline bool starts_again(const qp_traced_connection *t, const void *statement,
                                const qp_meter *meter)
{
    const qp_counted_statement *s = t->last;
    return meter && !meter->main && s && s->statement == statement &&
           qp_same_key(&s->key, &meter->key) && meter->counts && !meter->sampled && !t->sampled &&
           !meter->explanation && t->epoch == qp_counting.epoch &&
           (!s->transient || qp_traced_runs_again(t, t->last));
}

/* Notes the connection of the call in progress, if the driver's objects do not show it. */
static QP_COLD void note_connection(const qp_traced_connection *t)
{
    qp_meter *meter = innermost_meter();
    if (meter && (!meter->connection || meter->connection == t->serial)) {
        meter->connection = t->serial;
        meter->transaction = qp_traced_transaction(t);
    }
}

static QP_INLINE void handle_event(qp_traced_connection *t, unsigned event, void *subject)
{
    if (event == QP_TRACE_STMT) {
        qp_meter *meter = innermost_meter();
        if (starts_again(t, subject, meter)) {
            t->last->executions += !meter->counted;
            meter->counted = true;
            meter->main = subject;
            meter->is_whole = t->last->is_whole;
        } else if (qp_counting.is_on) {
            statement_started(t, subject);
        }
    } else if (event == QP_TRACE_PROFILE && qp_counting.is_on) {
        statement_ended(t, subject);
    } else if (event == QP_TRACE_CLOSE) {
        connection_closed(t);
        return;
    }
    if (t->traces_ends && qp_counting.notes_connections) {
        note_connection(t);
    }
}

static int on_trace(unsigned event, void *context, void *subject, void *Py_UNUSED(detail))
{
    const qp_thread *thread = qp_here.thread;
    qp_active_call *active = thread ? thread->active : NULL;
    bool is_measured = active && active->is_measured;
    uint64_t from = is_measured ? qp_clock_ticks() : 0;
    handle_event(context, event, subject);
    if (is_measured) {
        active->own_ticks += qp_elapsed_ticks(from, qp_clock_ticks());
    }
    return 0;
}

void qp_trace_renew_events(qp_traced_connection *t)
{
    bool ends = t->traces_ends || t->watchers;
    unsigned events = QP_TRACE_STMT | QP_TRACE_CLOSE | (ends ? QP_TRACE_PROFILE : 0);
    t->sqlite->trace_v2(t->db, events, on_trace, t);
}

qp_traced_connection *qp_trace_connection(void *db, const qp_sqlite_functions *sqlite,
                                          bool traces_ends)
{
    qp_traced_connection *t =
        sqlite->db_mutex(db) ? qp_traced_connection_new(db, qp_counting.epoch) : NULL;
    if (t) {
        t->sqlite = sqlite;
        t->traces_ends = traces_ends;
        t->path = qp_copy_path(sqlite->db_filename(db, "main"));
        qp_trace_renew_events(t);
    }
    return t;
}

qp_meter *qp_meter_here(void)
{
    return innermost_meter();
}

qp_active_call *qp_call_that_started(const void *statement)
{
    const qp_thread *thread = qp_here.thread;
    qp_active_call *a = thread ? thread->active : NULL;
    while (a && (qp_operation_serves_rows(a->operation) || a->statement != statement)) {
        a = a->below;
    }
    return a;
}
