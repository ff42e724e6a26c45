#include "calls/call_rows.h"

#include <string.h>

#include "runtime/compiler.h"
#include "runtime/exception.h"
#include "sqlite/library.h"
#include "statements/statements.h"

/* Returns the number of rows in a driver's sequence of rows; 0 for another object. */
static int64_t sequence_row_count(PyObject *rows)
{
    return PyList_CheckExact(rows)    ? PyList_GET_SIZE(rows)
           : PyTuple_CheckExact(rows) ? PyTuple_GET_SIZE(rows) /* PyMySQL, mysqlclient */
                                      : 0;
}

int64_t qp_fetched_row_count(const qp_call *call, PyObject *result)
{
    switch (call->active.operation) {
    case QP_NEXT:
        return result != NULL;
    case QP_FETCHONE:
        return result && result != Py_None;
    default:
        if (call->probe->returns == QP_RETURNS_ROW && result && !PyList_CheckExact(result)) {
            return result != Py_None;
        }
        return result ? sequence_row_count(result) : 0;
    }
}

/* Returns the row count at the end of a command tag, or 0. The tags of some statements have no row
 * count (https://www.postgresql.org/docs/current/protocol-message-formats.html,
 * CommandComplete). */
static int64_t command_tag_row_count(PyObject *status)
{
    Py_ssize_t size;
    const char *text = PyUnicode_CheckExact(status) ? PyUnicode_AsUTF8AndSize(status, &size) : NULL;
    if (!text) {
        qp_exception_clear();
        return 0;
    }
    int64_t rows = 0, unit = 1;
    while (size && text[size - 1] >= '0' && text[size - 1] <= '9' && unit < INT64_MAX / 10) {
        rows += (text[--size] - '0') * unit;
        unit *= 10;
    }
    return size && text[size - 1] == ' ' ? rows : 0;
}

int64_t qp_result_row_count(const qp_call *call, PyObject *result)
{
    qp_result_kind returns = call->probe->returns;
    if (!result || returns == QP_RETURNS_VALUES) {
        return 0;
    }
    if (returns == QP_RETURNS_STATUS) {
        return command_tag_row_count(result);
    }
    return returns == QP_RETURNS_ROW ? result != Py_None : sequence_row_count(result);
}

/* Returns the number of changed rows that a driver written in Python reports. Such drivers also
 * report a query's number of rows as changed rows. Reading the attribute may run the program's
 * code. Returns -1 if the recording has ended meanwhile. */
static QP_COLD int64_t reported_row_count(const qp_call *call, PyObject *result)
{
    uint32_t statement = call->execution->meter.key.statement;
    if (!result || !qp_statement_get_row(statement)->changes_rows) {
        return 0;
    }
    bool was_muted = qp_here.muted;
    qp_here.muted = true;
    PyObject *cursor = PyObject_HasAttrString(result, "rowcount") ? result : call->self;
    PyObject *rowcount = cursor ? PyObject_GetAttrString(cursor, "rowcount") : NULL;
    long long changed = rowcount && PyLong_Check(rowcount) ? PyLong_AsLongLong(rowcount) : 0;
    qp_exception_clear(); /* no exception was set before, because the call has returned a value */
    Py_XDECREF(rowcount);
    qp_here.muted = was_muted;
    if (call->recording != qp_recording) {
        return -1;
    }
    return changed > 0 ? changed : 0;
}

/* Returns the number of changed rows that the driver does not count: the rows of a script, and of a
 * statement that begins with WITH. */
static QP_COLD int64_t uncounted_row_count(const qp_call *call)
{
    if (call->active.operation == QP_EXECUTESCRIPT) {
        return call->script_rows;
    }
    PyObject *connection = qp_connection_of(call);
    void *db = connection ? qp_connection_db(connection) : NULL;
    /* The driver clears the connection's db with the GIL held before it closes the connection, so
     * the connection is open. */
    return qp_counting.is_on && db && db == call->active.db ? qp_sqlite.changes(db) : 0;
}

int64_t qp_changed_row_count(const qp_call *call, PyObject *result)
{
    long changed = 0;
    if (call->probe->stands_in) {
        return reported_row_count(call, result);
    }
    if (result && call->probe->rowcount_offset &&
        (result == call->self || PyObject_TypeCheck(result, call->probe->cursor_type))) {
        memcpy(&changed, (const char *)result + call->probe->rowcount_offset, sizeof changed);
    }
    bool is_uncounted =
        call->active.operation == QP_EXECUTESCRIPT ||
        (changed < 0 &&
         qp_statement_get_row(call->execution->meter.key.statement)->changes_uncounted);
    return is_uncounted ? uncounted_row_count(call) : changed > 0 ? changed : 0;
}
