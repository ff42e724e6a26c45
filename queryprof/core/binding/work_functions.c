/* The module's functions for spans, handoffs to other threads, labels, the resource usage of
 * threads, queryprof's own work, and explanations of refused locks. */
#include "binding/module.h"

#include "calls/executions.h"
#include "calls/refusal.h"
#include "context/handoffs.h"
#include "context/spans.h"
#include "context/statement_labels.h"
#include "memory/texts.h"
#include "recording/recorder.h"
#include "runtime/exception.h"
#include "runtime/recording.h"
#include "statements/statements.h"
#include "threads/thread_usage.h"
#include "threads/threads.h"
#include "wrappers/in_place.h"
#include "wrappers/module_state.h"
#include "wrappers/watched_call.h"

static PyObject *set_span_variable(PyObject *Py_UNUSED(module), PyObject *variable)
{
    if (!PyContextVar_CheckExact(variable)) {
        return PyErr_Format(PyExc_TypeError, "no context variable: %R", variable);
    }
    if (qp_recorder_is_on()) { /* the end of the recording drops the reference */
        qp_span_set_variable(variable);
    }
    Py_RETURN_NONE;
}

static PyObject *span_begin(PyObject *Py_UNUSED(module), PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        return PyErr_Format(PyExc_TypeError, "a span's name is a str, not %s",
                            Py_TYPE(name)->tp_name);
    }
    int64_t span = qp_recorder_is_on() ? qp_span_begin(name) : 0;
    qp_exception_clear(); /* out of memory: the work continues without its span */
    return PyLong_FromLongLong(span);
}

static PyObject *span_end(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long span;
    int failed;
    if (!PyArg_ParseTuple(args, "Lp:span_end", &span, &failed)) {
        return NULL;
    }
    if (qp_recorder_is_on()) {
        qp_span_stop_clock(span);
        qp_executions_flush(); /* so that the span includes its last fetches */
        qp_span_end(span, failed);
    }
    Py_RETURN_NONE;
}

static PyObject *count_span_status(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long span;
    int status;
    if (!PyArg_ParseTuple(args, "Li:count_span_status", &span, &status)) {
        return NULL;
    }
    if (qp_recorder_is_on()) {
        qp_span_count_status(span, status);
    }
    Py_RETURN_NONE;
}

static PyObject *span_database_figures(PyObject *Py_UNUSED(module), PyObject *number)
{
    long long span = PyLong_AsLongLong(number);
    if (span == -1 && PyErr_Occurred()) {
        return NULL;
    }
    int64_t executions = 0, database_ns = 0;
    if (qp_recorder_is_on()) {
        qp_executions_flush();
        qp_span_database_figures(span, &executions, &database_ns);
    }
    return Py_BuildValue("(LL)", (long long)executions, (long long)database_ns);
}

static PyObject *span_coroutine(PyObject *module, PyObject *args)
{
    long long span;
    PyObject *coroutine;
    if (!PyArg_ParseTuple(args, "LO:span_coroutine", &span, &coroutine)) {
        return NULL;
    }
    if (!qp_recorder_is_on()) {
        return Py_NewRef(coroutine);
    }
    const qp_module_state *state = PyModule_GetState(module);
    return qp_span_coroutine(state->coroutine_proxy_type, span, Py_NewRef(coroutine));
}

static PyObject *handoff_wrapper(PyObject *module, PyObject *args)
{
    PyObject *original;
    const char *kind;
    Py_ssize_t position;
    int is_awaited, is_timed, is_database;
    if (!PyArg_ParseTuple(args, "Osnppp:handoff_wrapper", &original, &kind, &position, &is_awaited,
                          &is_timed, &is_database)) {
        return NULL;
    }
    return qp_handoff_wrapper(module, original, kind, position, is_awaited, is_timed, is_database);
}

static PyObject *label_wrapper(PyObject *module, PyObject *args)
{
    PyObject *original, *describe;
    if (!PyArg_ParseTuple(args, "OO:label_wrapper", &original, &describe)) {
        return NULL;
    }
    return qp_label_wrapper(module, original, describe);
}

/* Converts a tuple to a qp_usage, as the stub declares it. Returns 0 with an exception. */
static int read_usage(PyObject *figures, void *usage)
{
    long long f[8];
    if (!PyTuple_Check(figures) || !PyArg_ParseTuple(figures, "LLLLLLLL", &f[0], &f[1], &f[2],
                                                     &f[3], &f[4], &f[5], &f[6], &f[7])) {
        return 0;
    }
    *(qp_usage *)usage = (qp_usage){f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]};
    return 1;
}

static PyObject *count_thread_usage(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long kernel_id;
    PyObject *name;
    qp_usage now, before;
    if (!PyArg_ParseTuple(args, "LUO&O&:count_thread_usage", &kernel_id, &name, read_usage, &now,
                          read_usage, &before) ||
        !qp_require_recording()) {
        return NULL;
    }
    qp_thread_usage_count_living(kernel_id, qp_thread_name_number(name), &now, &before);
    Py_RETURN_NONE;
}

static PyObject *set_lock_refusal_explainer(PyObject *Py_UNUSED(module), PyObject *function)
{
    qp_lock_refusal_set_explainer(function == Py_None ? NULL : function);
    Py_RETURN_NONE;
}

static PyObject *set_signal_check(PyObject *Py_UNUSED(module), PyObject *function)
{
    qp_exception_set_signal_check(function);
    Py_RETURN_NONE;
}

static PyObject *fork_hook(PyObject *Py_UNUSED(module), PyObject *function)
{
    return qp_make_fork_hook(function);
}

static PyObject *watched_call_wrapper(PyObject *module, PyObject *args)
{
    PyObject *original, *watch;
    if (!PyArg_ParseTuple(args, "OO:watched_call_wrapper", &original, &watch)) {
        return NULL;
    }
    const qp_module_state *state = PyModule_GetState(module);
    return qp_watched_call_wrapper(state->wrapper_type, original, watch);
}

static PyObject *measure_in_place(PyObject *module, PyObject *args)
{
    PyObject *wrapper, *name;
    if (!PyArg_ParseTuple(args, "OU:measure_in_place", &wrapper, &name)) {
        return NULL;
    }
    const qp_module_state *state = PyModule_GetState(module);
    bool done = Py_IS_TYPE(wrapper, state->wrapper_type) && qp_in_place_install(wrapper, name);
    return PyBool_FromLong(done);
}

static PyObject *is_measured_in_place(PyObject *Py_UNUSED(module), PyObject *function)
{
    return PyBool_FromLong(qp_in_place_wrapper(function) != NULL);
}

static PyObject *end_measuring_in_place(PyObject *Py_UNUSED(module), PyObject *wrapper)
{
    qp_in_place_remove(wrapper);
    Py_RETURN_NONE;
}

/* Forgets the cursor at this address, because the object was freed. */
static PyObject *forget_cursor(PyObject *Py_UNUSED(module), PyObject *address)
{
    const void *cursor = PyLong_AsVoidPtr(address); /* identity only */
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (cursor && qp_recording) {
        qp_execution_forget_cursor(cursor);
    }
    Py_RETURN_NONE;
}

/* Calls one of queryprof's functions without the thread's trace and profile functions, which belong
 * to the program (PyThreadState_EnterTracing in the C API). Borrows `function`. */
static PyObject *call_untraced(PyObject *Py_UNUSED(module), PyObject *function)
{
    PyThreadState *thread = PyThreadState_Get();
    PyThreadState_EnterTracing(thread);
    PyObject *result = PyObject_CallNoArgs(function);
    PyThreadState_LeaveTracing(thread);
    return result;
}

PyMethodDef qp_work_functions[] = {
    {"call_untraced", call_untraced, METH_O, NULL},
    {"set_lock_refusal_explainer", set_lock_refusal_explainer, METH_O, NULL},
    {"set_signal_check", set_signal_check, METH_O, NULL},
    {"fork_hook", fork_hook, METH_O, NULL},
    {"set_span_variable", set_span_variable, METH_O, NULL},
    {"span_begin", span_begin, METH_O, NULL},
    {"span_end", span_end, METH_VARARGS, NULL},
    {"count_span_status", count_span_status, METH_VARARGS, NULL},
    {"span_database_figures", span_database_figures, METH_O, NULL},
    {"span_coroutine", span_coroutine, METH_VARARGS, NULL},
    {"handoff_wrapper", handoff_wrapper, METH_VARARGS, NULL},
    {"label_wrapper", label_wrapper, METH_VARARGS, NULL},
    {"measure_in_place", measure_in_place, METH_VARARGS, NULL},
    {"is_measured_in_place", is_measured_in_place, METH_O, NULL},
    {"end_measuring_in_place", end_measuring_in_place, METH_O, NULL},
    {"forget_cursor", forget_cursor, METH_O, NULL},
    {"watched_call_wrapper", watched_call_wrapper, METH_VARARGS, NULL},
    {"count_thread_usage", count_thread_usage, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
