#include "statement_objects.h"

#include <stdbool.h>

#include "sqlite_library.h"

enum { STATEMENTS_SEARCHED = 64 };

static struct {
    PyTypeObject *type; /* owned; NULL: not watched */
    destructor deallocate;
    qp_statement_ends *ends;
} watched;

/* The sqlite3_stmt * of a statement object: its first field. */
static void *statement_of(PyObject *object)
{
    return *(void **)((char *)object + sizeof(PyObject));
}

static void on_deallocate(PyObject *object)
{
    void *statement = statement_of(object);
    destructor deallocate = watched.deallocate;
    if (statement) {
        watched.ends(statement);
    }
    deallocate(object);
}

static bool belongs_to(void *db, const void *wanted)
{
    void *statement = qp_sqlite.next_stmt(db, NULL);
    for (int i = 0; statement && statement != wanted && i < STATEMENTS_SEARCHED; i++) {
        statement = qp_sqlite.next_stmt(db, statement);
    }
    return wanted && statement == wanted;
}

const char *qp_statement_objects_watch(PyObject *connection, qp_statement_ends *ends)
{
    void *db;
    const char *reason = qp_sqlite_connection(connection, &db);
    if (reason) {
        return reason;
    }
    /* Calling a connection prepares a statement and returns its object. */
    PyObject *object = PyObject_CallFunction(connection, "s", "SELECT 1");
    PyTypeObject *type = object ? Py_TYPE(object) : NULL;
    PyErr_Clear();
    if (!object || (size_t)type->tp_basicsize < sizeof(PyObject) + sizeof(void *) ||
        !belongs_to(db, statement_of(object))) {
        reason = "the layout of the driver's statements is not known";
    } else if (!watched.type) {
        watched.type = (PyTypeObject *)Py_NewRef((PyObject *)type);
        watched.deallocate = type->tp_dealloc;
        watched.ends = ends;
        type->tp_dealloc = on_deallocate;
    }
    Py_XDECREF(object);
    return reason;
}

void qp_statement_objects_unwatch(void)
{
    if (watched.type && watched.type->tp_dealloc == on_deallocate) {
        watched.type->tp_dealloc = watched.deallocate;
        Py_CLEAR(watched.type);
    } /* else somebody is on top of us, and calls us: our function stays in use */
}
