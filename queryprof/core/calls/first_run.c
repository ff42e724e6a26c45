#include "calls/first_run.h"

#include <string.h>

#include "context/spans.h"
#include "counters/counters.h"
#include "counters/pending_counters.h"
#include "counters/plans.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/exception.h"
#include "runtime/recording.h"
#include "sqlite/library.h"
#include "statements/statements.h"

/* Returns the number of rows that a script's connection has changed so far; 0 for a call that is
 * not a script. */
static int64_t script_total_changes(const qp_call *call, PyObject *connection)
{
    bool is_script = call->active.operation == QP_EXECUTESCRIPT && qp_counting.is_on;
    void *db = is_script ? qp_connection_db(connection) : NULL;
    return db && db == call->active.db ? qp_sqlite.total_changes(db) : 0;
}

QP_COLD void qp_first_run_begin(qp_call *call, PyObject *connection, bool ours)
{
    uint64_t from = qp_clock_ticks();
    qp_execution *e = call->execution;
    if (e->meter.drops) { /* the text may fail after some of its statements have ended */
        qp_pending_counters_collect();
    }
    call->active.has_more = true;
    call->connection = Py_NewRef(connection);
    call->plan.traced = NULL;
    call->plan.explanation = (qp_explanation){0};
    uint32_t statement = e->meter.key.statement;
    qp_counters_attach_connection(connection);
    call->script_rows = script_total_changes(call, connection);
    if (ours &&
        (!qp_plan_is_known(connection, statement) || qp_statement_is_not_yet_accepted(statement))) {
        qp_explanation *wanted = &call->plan.explanation;
        bool is_asked =
            call->probe->source == QP_SOURCE_TEXT && qp_connection_is_counted(connection);
        wanted->columns = is_asked ? qp_column_question_new(call->active.sql) : NULL;
        wanted->wants_plan =
            qp_plan_request(&call->plan, connection, statement, call->active.operation);
        e->meter.explanation = wanted->wants_plan || wanted->columns ? wanted : NULL;
    }
    call->tells_ends = e->meter.drops && qp_counters_trace_statement_ends(connection, true);
    e->meter.counts = e->meter.drops ? call->tells_ends : e->meter.counts;
    qp_own_ticks += qp_elapsed_ticks(from, qp_clock_ticks());
}

/* Returns the message of an exception (borrowed from the exception), or NULL. Runs no code of the
 * program. */
static PyObject *exception_message(PyObject *value)
{
    PyObject *message = value;
    if (value && PyExceptionInstance_Check(value)) {
        PyObject *args = ((PyBaseExceptionObject *)value)->args;
        message = args && PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    }
    return message && PyUnicode_Check(message) ? message : NULL;
}

static bool contains_any(const char *text, const char *const *parts)
{
    while (*parts && !strstr(text, *parts)) {
        parts++;
    }
    return *parts != NULL;
}

/* Returns whether a message begins with one of these texts. A message quotes the program's text
 * only after its beginning. */
static bool begins_with_any(const char *text, const char *const *beginnings)
{
    static const char before[] = "SQLError: "; /* APSW's */
    if (!strncmp(text, before, sizeof before - 1)) {
        text += sizeof before - 1;
    }
    while (*beginnings && strncmp(text, *beginnings, strlen(*beginnings)) != 0) {
        beginnings++;
    }
    return *beginnings != NULL;
}

/* Returns the kind of a failed call's text. If SQLite's error is about names, locks or parameters,
 * the text is SQL. For other databases, the class of the exception decides. */
static qp_text_kind failed_text_kind(const qp_call *call)
{
    static const char *const of_names[] = {"no such ",
                                           "table ",
                                           "index ",
                                           "view ",
                                           "trigger ",
                                           "there is already ",
                                           "ambiguous column name",
                                           "wrong number of arguments",
                                           "not authorized",
                                           "access to ",
                                           "misuse of ",
                                           "attempt to write a readonly database",
                                           "too many ",
                                           NULL};
    /* SQLite accepted the text before these errors: the database was locked, or parameters could
     * not be bound. */
    static const char *const after[] = {"database is locked",
                                        "database table is locked",
                                        "database schema is locked",
                                        "Incorrect number of bindings",
                                        "Error binding parameter",
                                        "You did not supply a value for binding",
                                        NULL};
    static const char *const syntax[] = {"Syntax", "Parser", NULL};
    if (call->execution->meter.is_whole) {
        return QP_TEXT_SQL; /* the statement has started, so SQLite accepted the text */
    }
    qp_exception exception = qp_exception_take();
    const PyObject *type = exception.type;
    const char *name = type && PyType_Check(type) ? ((const PyTypeObject *)type)->tp_name : "";
    PyObject *message = exception_message(exception.value);
    const char *text = message ? PyUnicode_AsUTF8(message) : NULL;
    bool is_sql = call->probe->stands_in ? !contains_any(name, syntax)
                                         : text && begins_with_any(text, of_names);
    /* In a text with several statements, the statements after the failed one were not read. */
    bool is_taken = !call->execution->meter.drops &&
                    ((text && begins_with_any(text, after)) || strstr(name, "IntegrityError"));
    qp_text_kind kind = is_taken ? QP_TEXT_SQL : is_sql ? QP_TEXT_UNKNOWN_NAMES : QP_TEXT_NO_SQL;
    qp_exception_put_back(&exception); /* also drops an encoding error */
    return kind;
}

QP_COLD void qp_first_run_decide_statement(qp_call *call, PyObject *result)
{
    qp_execution *e = call->execution;
    if (call->recording != qp_recording || e->ignored ||
        qp_operations[call->active.operation].source != QP_SOURCE_TEXT) {
        return;
    }
    uint32_t number = e->meter.key.statement;
    const qp_column_question *columns = call->connection ? call->plan.explanation.columns : NULL;
    if (result && !columns && !qp_statement_is_not_yet_accepted(number)) {
        return; /* the statement of this text is already known */
    }
    uint64_t from = qp_clock_ticks();
    /* APSW returns with the first row, before it reads the following statements. On an untraced
     * connection, no statement is seen to start. */
    bool is_read = e->meter.is_whole || !e->meter.drops ||
                   call->active.operation == QP_EXECUTESCRIPT ||
                   (!e->meter.counted && !qp_statement_is_script(number));
    qp_text_kind kind = !result ? failed_text_kind(call) : is_read ? QP_TEXT_SQL : QP_TEXT_NO_SQL;
    PyObject *sql = call->active.sql;
    uint32_t right = kind == QP_TEXT_SQL
                         ? qp_statement_of_accepted(number, sql, columns)
                         : qp_statement_of_refused(number, sql, qp_dialect_of(call->probe), kind);
    if (right != number) {
        if (e->meter.counted) { /* all pending counters of this key belong to this call: see
                                 * qp_first_run_begin */
            qp_pending_counters_change_statement(&e->meter.key, right);
        }
        e->meter.key.statement = right;
        qp_span_change_statement(e, number);
    }
    qp_own_ticks += qp_elapsed_ticks(from, qp_clock_ticks());
}

/* Identifies a statement that has started. If the driver owns the statement, the statement belongs
 * to the call. */
static void identify_statement(qp_call *call, PyObject *result)
{
    PyObject *connection = qp_connection_of(call);
    if (connection && call->recording == qp_recording) {
        qp_counters_identify_statement(connection, result ? result : call->self, &call->active);
    }
    call->active.statement = NULL;
}

/* Stores the answers to the requests made when the statement started. */
static void store_answers(qp_call *call)
{
    if (call->execution) {
        call->execution->meter.explanation = NULL;
    }
    if (call->plan.traced && call->recording == qp_recording) {
        qp_plan_store_answer(&call->plan, call->connection, call->execution->meter.key.statement,
                             call->active.sql);
    }
    qp_free(call->plan.explanation.tree);
    qp_free(call->plan.explanation.columns);
}

/* Returns the ticks that queryprof took inside the call. */
static QP_COLD int64_t end_on_connection(qp_call *call)
{
    uint64_t from = qp_clock_ticks();
    call->script_rows = script_total_changes(call, call->connection) - call->script_rows;
    if (call->tells_ends) {
        qp_counters_trace_statement_ends(call->connection, false);
    }
    store_answers(call);
    int64_t ticks = call->plan.explanation.ticks;
    qp_own_ticks += ticks + qp_elapsed_ticks(from, qp_clock_ticks());
    qp_exception exception = qp_exception_take();
    Py_CLEAR(call->connection); /* this may be the last reference, and close the connection */
    qp_exception_put_back(&exception);
    return ticks;
}

int64_t qp_first_run_end(qp_call *call, PyObject *result)
{
    call->active.has_more = false;
    if (call->active.statement) {
        identify_statement(call, result);
    }
    return call->connection ? end_on_connection(call) : 0;
}
