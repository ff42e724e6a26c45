#include "memory/changes.h"

#include "memory/columns.h"

#include "memory/region.h"
#include "runtime/allocation.h"

enum {
    LOG_BYTES = 16 * 1024 * 1024 /* all rows that can be watched; takes memory only where used */
};

typedef struct {
    uint32_t table;
    uint32_t number;
    /* followed by the row's bytes */
} entry;

static struct {
    char *log; /* mapped once; never freed */
    size_t used;
    bool is_watched;
    PyObject *sealed; /* owned list of changes before rows were emptied; or NULL */
} changes;

uint32_t qp_mark;

bool qp_changes_start(void)
{
    if (!changes.log) {
        changes.log = qp_map_zeros(LOG_BYTES);
    }
    qp_changes_clear();
    return changes.log != NULL;
}

void qp_changes_stop(void)
{
    if (changes.log && changes.used) {
        qp_map_reset(changes.log, LOG_BYTES);
    }
    qp_changes_clear();
}

void qp_changes_clear(void)
{
    changes.used = 0;
    changes.is_watched = false;
    qp_mark++;
    Py_CLEAR(changes.sealed);
}

void qp_row_save_before_change(qp_table table, void *row)
{
    size_t bytes = qp_tables[table].row_bytes;
    if (changes.is_watched && changes.used + sizeof(entry) + bytes <= LOG_BYTES) {
        char *to = changes.log + changes.used;
        uint32_t number = (uint32_t)((size_t)((char *)row - qp_table_start[table]) / bytes);
        *(entry *)(void *)to = (entry){table, number};
        memcpy(to + sizeof(entry), row, bytes);
        changes.used += sizeof(entry) + bytes;
    }
    *(uint32_t *)row = qp_mark;
}

/* Appends the rows of the log to a list. Returns false with an exception. */
static bool append_logged_rows(PyObject *rows)
{
    size_t at = 0;
    while (at < changes.used) {
        const entry *one = (const entry *)(const void *)(changes.log + at);
        Py_ssize_t bytes = (Py_ssize_t)qp_tables[one->table].row_bytes;
        const char *now = qp_table_start[one->table] + (size_t)one->number * (size_t)bytes;
        PyObject *then = PyBytes_FromStringAndSize((const char *)(one + 1), bytes);
        PyObject *row = Py_BuildValue("(IINN)", one->table, one->number, then,
                                      PyBytes_FromStringAndSize(now, bytes));
        if (!row || PyList_Append(rows, row) < 0) {
            Py_XDECREF(row);
            return false;
        }
        Py_DECREF(row);
        at += sizeof(entry) + (size_t)bytes;
    }
    return true;
}

bool qp_changes_save_before_clear(void)
{
    if (!changes.is_watched || !changes.used) {
        qp_mark++;
        return true;
    }
    PyObject *rows = changes.sealed ? changes.sealed : PyList_New(0);
    if (!rows || !append_logged_rows(rows)) {
        Py_XDECREF(rows);
        changes.sealed = NULL;
        return false;
    }
    changes.sealed = rows;
    changes.used = 0;
    qp_mark++;
    return true;
}

PyObject *qp_changes_take_rows(bool watches)
{
    PyObject *rows = changes.sealed ? changes.sealed : PyList_New(0);
    changes.sealed = NULL;
    if (rows && !append_logged_rows(rows)) {
        Py_CLEAR(rows);
    }
    changes.used = 0;
    changes.is_watched = watches;
    qp_mark++;
    return rows;
}
