#include "sums/errors.h"

#include "runtime/dictionary.h"
#include <string.h>

#include "memory/region.h"
#include "memory/texts.h"
#include "statements/statements.h"

enum {
    NAME_BYTES = 200,
    DESCRIBED_BYTES = 3 * NAME_BYTES,
    BUSY = 5, /* SQLITE_BUSY, as in an exception of APSW */
    BUSY_SNAPSHOT = 517
};

/* Writes the qualified name of an exception's type; no code of the program runs. */
static void write_exception_name(PyObject *exception_type, char name[NAME_BYTES])
{
    PyTypeObject *type = (PyTypeObject *)exception_type;
    PyObject *module = NULL;
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_dict) {
        module = qp_dict_find(type->tp_dict, "__module__"); /* borrowed */
    }
    const char *prefix = module && PyUnicode_CheckExact(module) ? PyUnicode_AsUTF8(module) : NULL;
    bool plain = !prefix || !strcmp(prefix, "builtins");
    PyOS_snprintf(name, NAME_BYTES, "%s%s%s", plain ? "" : prefix, plain ? "" : ".", type->tp_name);
}

static const char *const busy_names[] = {"SQLITE_BUSY", "SQLITE_BUSY_RECOVERY",
                                         "SQLITE_BUSY_SNAPSHOT", "SQLITE_BUSY_TIMEOUT"};

enum { BUSY_NAMES = sizeof busy_names / sizeof *busy_names };

/* Returns a value in a dict (borrowed) by a str key, or NULL. The program's own key objects are not
 * compared, since that would run its code. */
static PyObject *dict_item(PyObject *dict, const char *wanted)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (PyUnicode_CheckExact(key) && PyUnicode_CompareWithASCIIString(key, wanted) == 0) {
            return value;
        }
    }
    return NULL;
}

/* Returns whether an exception's only argument is SQLite's message for a refused lock. */
static bool says_locked(const PyBaseExceptionObject *exception)
{
    PyObject *text = exception->args && PyTuple_GET_SIZE(exception->args) == 1
                         ? PyTuple_GET_ITEM(exception->args, 0)
                         : NULL;
    return text && PyUnicode_CheckExact(text) &&
           PyUnicode_CompareWithASCIIString(text, "database is locked") == 0;
}

/* Returns SQLite's name of a lock error from the driver's exception; NULL for other errors. The
 * name is static text, because anything in the exception may be a secret. */
static const char *lock_error_name(PyObject *value)
{
    if (!PyExceptionInstance_Check(value)) {
        return NULL;
    }
    const PyBaseExceptionObject *exception = (PyBaseExceptionObject *)value;
    PyObject *fields =
        exception->dict && PyDict_CheckExact(exception->dict) ? exception->dict : NULL;
    PyObject *name = fields ? dict_item(fields, "sqlite_errorname") : NULL;
    for (int i = 0; name && PyUnicode_CheckExact(name) && i < BUSY_NAMES; i++) {
        if (PyUnicode_CompareWithASCIIString(name, busy_names[i]) == 0) {
            return busy_names[i];
        }
    }
    PyObject *code = fields ? dict_item(fields, "extendedresult") : NULL; /* APSW's */
    if (code && PyLong_CheckExact(code)) {
        int overflow;
        long number = PyLong_AsLongAndOverflow(code, &overflow);
        return number == BUSY_SNAPSHOT ? "SQLITE_BUSY_SNAPSHOT"
               : number == BUSY        ? "SQLITE_BUSY"
                                       : NULL;
    }
    return !name && says_locked(exception) ? "SQLITE_BUSY" : NULL;
}

/* Writes the exception's type and, if a lock was refused, SQLite's name for the error. Preserves
 * the exception. Returns whether the exception is about a lock. */
static bool describe_exception(bool would_write, char described[DESCRIBED_BYTES])
{
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    char name[NAME_BYTES];
    PyErr_Fetch(&type, &value, &traceback);
    write_exception_name(type, name);
    const char *error = value ? lock_error_name(value) : NULL;
    PyErr_Restore(type, value, traceback);
    if (error) {
        PyOS_snprintf(described, DESCRIBED_BYTES, "%s: database is locked (%s%s)", name, error,
                      would_write ? " of a read transaction" : "");
    } else {
        memcpy(described, name, NAME_BYTES);
    }
    return error;
}

bool qp_count_exception(const qp_key *key, bool would_write)
{
    char bytes[DESCRIBED_BYTES];
    bool is_busy = describe_exception(would_write, bytes);
    qp_text name = qp_text_find_or_add(bytes, strlen(bytes));
    qp_error_row *rows = qp_first_row(QP_ERROR_ROWS);
    uint32_t count = qp_row_count(QP_ERROR_ROWS);
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].name == name && qp_same_key(&rows[i].key, key)) {
            rows[i].count++;
            return is_busy;
        }
    }
    /* The last row counts all further types. */
    uint32_t added = count < QP_ERRORS ? qp_rows_add(QP_ERROR_ROWS, 1) : count - 1;
    if (added == UINT32_MAX) {
        return is_busy;
    }
    if (added < QP_ERRORS - 1) {
        rows[added] = (qp_error_row){.key = *key, .name = name, .count = 1};
        return is_busy;
    }
    rows[added].key = (qp_key){.statement = QP_STATEMENT_OTHER};
    rows[added].name = qp_text_find_or_add("(other)", 7);
    rows[added].count++;
    return is_busy;
}
