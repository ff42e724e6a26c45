/* The module's functions about where work belongs: spans, handoffs to other threads, notes, and
 * what threads used. */
#include "module.h"

#include "handoffs.h"
#include "notes.h"
#include "spans.h"
#include "thread_ends.h"

static PyObject *set_span_variable(PyObject *Py_UNUSED(module), PyObject *variable)
{
    if (!PyContextVar_CheckExact(variable)) {
        return PyErr_Format(PyExc_TypeError, "no context variable: %R", variable);
    }
    qp_span_set_variable(variable);
    Py_RETURN_NONE;
}

static PyObject *span_begin(PyObject *Py_UNUSED(module), PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        return PyErr_Format(PyExc_TypeError, "a span's name is a str, not %s",
                            Py_TYPE(name)->tp_name);
    }
    int64_t span = qp_require_recording() ? qp_span_begin(name) : 0;
    return span ? PyLong_FromLongLong(span) : NULL;
}

static PyObject *span_end(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long span;
    int failed;
    if (!PyArg_ParseTuple(args, "Lp:span_end", &span, &failed)) {
        return NULL;
    }
    qp_span_end(span, failed);
    Py_RETURN_NONE;
}

static PyObject *span_status(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long span;
    int status;
    if (!PyArg_ParseTuple(args, "Li:span_status", &span, &status)) {
        return NULL;
    }
    qp_span_status(span, status);
    Py_RETURN_NONE;
}

static PyObject *span_figures(PyObject *Py_UNUSED(module), PyObject *number)
{
    long long span = PyLong_AsLongLong(number);
    if (span == -1 && PyErr_Occurred()) {
        return NULL;
    }
    int64_t executions, database_ns;
    qp_span_figures(span, &executions, &database_ns);
    return Py_BuildValue("(LL)", (long long)executions, (long long)database_ns);
}

static PyObject *span_watch(PyObject *module, PyObject *args)
{
    long long span;
    PyObject *coroutine;
    if (!PyArg_ParseTuple(args, "LO:span_watch", &span, &coroutine)) {
        return NULL;
    }
    const qp_module_state *state = PyModule_GetState(module);
    return qp_span_watch(state->awaited_type, span, Py_NewRef(coroutine));
}

static PyObject *work_changed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(qp_spans_changed() || qp_thread_ends_waiting());
}

static PyObject *handover_runner(PyObject *module, PyObject *args)
{
    PyObject *original;
    const char *kind;
    Py_ssize_t position;
    int is_awaited, is_timed, is_database;
    if (!PyArg_ParseTuple(args, "Osnppp:handover_runner", &original, &kind, &position, &is_awaited,
                          &is_timed, &is_database)) {
        return NULL;
    }
    return qp_handover_runner(module, original, kind, position, is_awaited, is_timed, is_database);
}

static PyObject *note_runner(PyObject *module, PyObject *args)
{
    PyObject *original, *describe;
    if (!PyArg_ParseTuple(args, "OO:note_runner", &original, &describe)) {
        return NULL;
    }
    return qp_note_runner(module, original, describe);
}

static PyObject *take_handoffs(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_handoffs_take() : NULL;
}

static PyObject *take_notes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_notes_take() : NULL;
}

static PyObject *take_spans(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_spans_take() : NULL;
}

static PyObject *take_repeats(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_repeats_take() : NULL;
}

static PyObject *take_statuses(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_statuses_take() : NULL;
}

static PyObject *take_ended_threads(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_thread_ends_take() : NULL;
}

PyMethodDef qp_work_functions[] = {
    {"set_span_variable", set_span_variable, METH_O, NULL},
    {"span_begin", span_begin, METH_O, NULL},
    {"span_end", span_end, METH_VARARGS, NULL},
    {"span_status", span_status, METH_VARARGS, NULL},
    {"span_figures", span_figures, METH_O, NULL},
    {"span_watch", span_watch, METH_VARARGS, NULL},
    {"work_changed", work_changed, METH_NOARGS, NULL},
    {"handover_runner", handover_runner, METH_VARARGS, NULL},
    {"note_runner", note_runner, METH_VARARGS, NULL},
    {"take_handoffs", take_handoffs, METH_NOARGS, NULL},
    {"take_notes", take_notes, METH_NOARGS, NULL},
    {"take_spans", take_spans, METH_NOARGS, NULL},
    {"take_repeats", take_repeats, METH_NOARGS, NULL},
    {"take_statuses", take_statuses, METH_NOARGS, NULL},
    {"take_ended_threads", take_ended_threads, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
