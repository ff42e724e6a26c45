#include "sums/errors.h"

#include <string.h>

#include "memory/region.h"
#include "memory/texts.h"
#include "statements/statements.h"

enum {
    NAME_BYTES = 200,
    DESCRIBED_BYTES = 3 * NAME_BYTES,
    BUSY = 5, /* of SQLite, as an exception of APSW's has it */
    BUSY_SNAPSHOT = 517
};

/* Writes the qualified name of an exception's type; no code of the program runs. */
static void name_exception(PyObject *exception_type, char name[NAME_BYTES])
{
    PyTypeObject *type = (PyTypeObject *)exception_type;
    PyObject *module = NULL;
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_dict) {
        module = PyDict_GetItemString(type->tp_dict, "__module__"); /* borrowed */
    }
    const char *prefix = module && PyUnicode_CheckExact(module) ? PyUnicode_AsUTF8(module) : NULL;
    bool plain = !prefix || !strcmp(prefix, "builtins");
    PyOS_snprintf(name, NAME_BYTES, "%s%s%s", plain ? "" : prefix, plain ? "" : ".", type->tp_name);
}

/* What SQLite calls the error (borrowed), as the driver's exception has it; NULL: it does not. */
static const char *sqlites_name(PyObject *exception)
{
    PyTypeObject *type = Py_TYPE(exception);
    if (!PyExceptionInstance_Check(exception) || type->tp_getattro != PyObject_GenericGetAttr) {
        return NULL;
    }
    const PyObject *fields = ((PyBaseExceptionObject *)exception)->dict;
    PyObject *name = NULL;
    if (fields && PyDict_CheckExact(fields)) {
        name = PyDict_GetItemString((PyObject *)fields, "sqlite_errorname");         /* borrowed */
        PyObject *code = PyDict_GetItemString((PyObject *)fields, "extendedresult"); /* APSW's */
        if (!name && code && PyLong_CheckExact(code)) {
            return PyLong_AsLong(code) == BUSY_SNAPSHOT ? "SQLITE_BUSY_SNAPSHOT"
                   : PyLong_AsLong(code) == BUSY        ? "SQLITE_BUSY"
                                                        : NULL;
        }
    }
    return name && PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8(name) : NULL;
}

/* Writes the exception's type and, where a lock was refused, how. Keeps the exception. Returns
 * whether it is about a lock. */
static bool describe_exception(bool would_write, char described[DESCRIBED_BYTES])
{
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    char name[NAME_BYTES];
    PyErr_Fetch(&type, &value, &traceback);
    name_exception(type, name);
    const char *error = value ? sqlites_name(value) : NULL;
    bool is_busy = error && !strncmp(error, "SQLITE_BUSY", 11) && strlen(error) < NAME_BYTES;
    PyErr_Restore(type, value, traceback);
    if (is_busy) {
        PyOS_snprintf(described, DESCRIBED_BYTES, "%s: database is locked (%s%s)", name, error,
                      would_write ? " of a read transaction" : "");
    } else {
        memcpy(described, name, NAME_BYTES);
    }
    return is_busy;
}

bool qp_error_count(const qp_key *key, bool would_write)
{
    char bytes[DESCRIBED_BYTES];
    bool is_busy = describe_exception(would_write, bytes);
    qp_text name = qp_text_of(bytes, strlen(bytes));
    qp_error_row *rows = qp_rows(QP_ERROR_ROWS);
    uint32_t count = qp_row_count(QP_ERROR_ROWS);
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].name == name && qp_same_key(&rows[i].key, key)) {
            rows[i].count++;
            return is_busy;
        }
    }
    /* The last row is for all further types. */
    uint32_t added = count < QP_ERRORS ? qp_rows_add(QP_ERROR_ROWS, 1) : count - 1;
    if (added == UINT32_MAX) {
        return is_busy;
    }
    if (added < QP_ERRORS - 1) {
        rows[added] = (qp_error_row){.key = *key, .name = name, .count = 1};
        return is_busy;
    }
    rows[added].key = (qp_key){.statement = QP_STATEMENT_OTHER};
    rows[added].name = qp_text_of("(other)", 7);
    rows[added].count++;
    return is_busy;
}
