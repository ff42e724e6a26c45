#include "notes.h"

#include "allocation.h"
#include "module.h"
#include "origin.h"
#include "probe_object.h"
#include "statements.h"
#include "thread_local.h"

static struct {
    bool *noted;    /* by statement */
    PyObject *rows; /* owned list of (statement, note) that were not taken */
} table;

PyObject *qp_note_variable;

bool qp_notes_start(void)
{
    table.noted = qp_allocate(QP_STATEMENTS, sizeof *table.noted);
    table.rows = PyList_New(0);
    return table.noted && table.rows;
}

void qp_notes_stop(void)
{
    qp_release(table.noted);
    table.noted = NULL;
    Py_CLEAR(table.rows);
}

static PyObject *run(PyObject *callable, PyObject *const *args, size_t flagged, PyObject *names)
{
    qp_stand_in *self = (qp_stand_in *)callable;
    PyObject *original = Py_NewRef(self->wrapped);
    PyObject *note = PyObject_Vectorcall(self->extra, args, flagged, names);
    PyObject *token = note && note != Py_None ? PyContextVar_Set(qp_note_variable, note) : NULL;
    PyErr_Clear(); /* then there is no note */
    PyObject *result = PyObject_Vectorcall(original, args, flagged, names);
    if (token) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (PyContextVar_Reset(qp_note_variable, token) < 0) {
            PyErr_Clear(); /* another context runs: its note is its own */
        }
        PyErr_Restore(type, value, traceback);
    }
    Py_XDECREF(token);
    Py_XDECREF(note);
    Py_DECREF(original);
    return result;
}

PyObject *qp_note_runner(PyObject *module, PyObject *original, PyObject *describe)
{
    const qp_module_state *state = PyModule_GetState(module);
    if (!qp_note_variable) {
        qp_note_variable = PyContextVar_New("queryprof.note", NULL);
    }
    return qp_note_variable
               ? qp_probe_object_calling(state->probe_object_type, run, original, describe)
               : NULL;
}

PyObject *qp_note_running(void)
{
    PyObject *note = NULL;
    if (qp_note_variable && PyContextVar_Get(qp_note_variable, NULL, &note) < 0) {
        PyErr_Clear(); /* no context: no note */
    }
    const qp_origin *origin = note ? NULL : qp_origin_now();
    if (origin) {
        note = Py_XNewRef(origin->note);
    }
    return note;
}

void qp_note_statement(uint32_t statement)
{
    if (table.noted[statement]) {
        return;
    }
    PyObject *note = qp_note_running();
    PyObject *row = note ? Py_BuildValue("(IO)", (unsigned)statement, note) : NULL;
    if (row && table.rows) { /* a garbage collection may have ended the recording */
        table.noted[statement] = PyList_Append(table.rows, row) == 0;
    }
    PyErr_Clear(); /* no memory: no note */
    Py_XDECREF(row);
    Py_XDECREF(note);
}

PyObject *qp_notes_take(void)
{
    PyObject *taken = table.rows;
    PyObject *rows = PyList_New(0);
    if (!rows) {
        return NULL;
    }
    table.rows = rows;
    return taken;
}
