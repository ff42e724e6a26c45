#include "sqlite/statement_objects.h"

#include <stdbool.h>

#include "runtime/exception.h"
#include "sqlite/library.h"

enum { STATEMENTS_SEARCHED = 64 };

static struct {
    PyTypeObject *type;       /* owned; NULL if not watched */
    PyTypeObject *cache_type; /* borrowed from functools: type of the cache of a connection's last
                               * statements */
    destructor deallocate;
    qp_statement_ends *ends;
} watched;

/* Returns the sqlite3_stmt * of a statement object: the object's first field. */
static void *statement_of(PyObject *object)
{
    return *(void **)((char *)object + sizeof(PyObject));
}

static void on_deallocate(PyObject *object)
{
    void *statement = statement_of(object);
    destructor deallocate = watched.deallocate;
    PyObject_GC_UnTrack(object); /* remove it first, because `ends` may release the GIL, and
                                  * nothing must find the object then */
    if (statement) {
        watched.ends(statement);
    }
    deallocate(object);
}

/* Maximum number of visited objects in a connection's cache, with about three per statement. */
enum { LOOKS = 1024 };

typedef struct {
    const void *statement;
    PyObject *found; /* borrowed */
    int looks;
} search;

static int visit_object(PyObject *visited, void *context)
{
    search *s = context;
    if (Py_IS_TYPE(visited, watched.type) && statement_of(visited) == s->statement) {
        s->found = visited;
    }
    return s->found != NULL || ++s->looks == LOOKS;
}

/* Searches a cache that a connection refers to. */
static int search_if_cache(PyObject *visited, void *context)
{
    search *s = context;
    if (!s->found && Py_IS_TYPE(visited, watched.cache_type)) {
        watched.cache_type->tp_traverse(visited, visit_object, context);
    }
    return s->found != NULL;
}

/* Traverses the object as the garbage collector does, which calls no code of the program. */
static void traverse_object(PyObject *object, visitproc visit, search *s)
{
    traverseproc function = object ? Py_TYPE(object)->tp_traverse : NULL;
    if (!s->found && function) {
        function(object, visit, s);
    }
}

PyObject *qp_statement_object(PyObject *connection, PyObject *cursor, const void *statement)
{
    search s = {.statement = statement};
    if (watched.type) {
        traverse_object(cursor, visit_object, &s);
        traverse_object(connection, search_if_cache, &s);
    }
    return s.found;
}

/* Returns the type of the caches that functools.lru_cache makes (borrowed from its module); NULL if
 * unknown. */
static PyTypeObject *find_cache_type(void)
{
    PyObject *module = PyImport_ImportModule("_functools");
    PyObject *type = module ? PyObject_GetAttrString(module, "_lru_cache_wrapper") : NULL;
    qp_exception_clear();
    Py_XDECREF(type); /* the module keeps it */
    Py_XDECREF(module);
    return type && PyType_Check(type) ? (PyTypeObject *)type : NULL;
}

static bool has_statement(void *db, const void *wanted)
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
    const char *reason = qp_sqlite_find_db(connection, &db);
    if (reason) {
        return reason;
    }
    /* Calling a connection prepares a statement and returns its object. */
    PyObject *object = PyObject_CallFunction(connection, "s", "SELECT 1");
    PyTypeObject *type = object ? Py_TYPE(object) : NULL;
    qp_exception_clear();
    watched.cache_type = find_cache_type();
    if (!object || (size_t)type->tp_basicsize < sizeof(PyObject) + sizeof(void *) ||
        !has_statement(db, statement_of(object)) || !watched.cache_type) {
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
    } /* otherwise another function has replaced ours and may call it: ours stays in use */
}
