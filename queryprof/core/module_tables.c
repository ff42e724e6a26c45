/* The module's functions that empty the recorder's tables, and tell what their numbers mean. */
#include "module.h"

#include "aggregates.h"
#include "callpath.h"
#include "counters.h"
#include "plans.h"
#include "recorder.h"
#include "samples.h"
#include "spans.h"
#include "statements.h"
#include "threads.h"
#include "timeline.h"

static PyObject *settle(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (!qp_require_recording()) {
        return NULL;
    }
    qp_recorder_settle();
    Py_RETURN_NONE;
}

static PyObject *take_aggregates(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t limit;
    if (!PyArg_ParseTuple(args, "n:take_aggregates", &limit) || !qp_require_recording()) {
        return NULL;
    }
    return qp_aggregates_take(limit);
}

static PyObject *take_errors(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_errors_take() : NULL;
}

static PyObject *take_exemplars(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_exemplars_take() : NULL;
}

static PyObject *take_stack_samples(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_stack_samples_take() : NULL;
}

static PyObject *take_timeline(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_timeline_take() : NULL;
}

static PyObject *end_interval(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? PyBool_FromLong(qp_recorder_end_interval()) : NULL;
}

static PyObject *restart_exemplars(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (!qp_require_recording()) {
        return NULL;
    }
    qp_exemplars_restart();
    Py_RETURN_NONE;
}

static PyObject *take_plans(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_plans_take() : NULL;
}

static PyObject *losses(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return Py_BuildValue("(KKKK)", (unsigned long long)qp_statements_folded(),
                         (unsigned long long)qp_aggregates_folded(),
                         (unsigned long long)qp_counters_lost(),
                         (unsigned long long)qp_plans_unasked());
}

/* The number that names a statement, path, ... in `args`; -1 with an exception. */
static long long number_argument(PyObject *number)
{
    if (!qp_require_recording()) {
        return -1;
    }
    long long value = PyLong_AsLongLong(number);
    if (value < 0 && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "a number is not negative");
    }
    return value;
}

static PyObject *statement(PyObject *Py_UNUSED(module), PyObject *number)
{
    long long value = number_argument(number);
    return value < 0 ? NULL : qp_statement_text((uint32_t)value);
}

static PyObject *path(PyObject *Py_UNUSED(module), PyObject *number)
{
    long long value = number_argument(number);
    return value < 0 ? NULL : qp_stack_frames((uint32_t)value);
}

static PyObject *span(PyObject *Py_UNUSED(module), PyObject *number)
{
    long long value = number_argument(number);
    return value < 0 ? NULL : qp_span_name((uint16_t)value);
}

static PyObject *thread(PyObject *Py_UNUSED(module), PyObject *number)
{
    long long value = number_argument(number);
    return value < 0 ? NULL : qp_thread_name((uint16_t)value);
}

PyMethodDef qp_table_functions[] = {
    {"settle", settle, METH_NOARGS, NULL},
    {"take_aggregates", take_aggregates, METH_VARARGS, NULL},
    {"take_errors", take_errors, METH_NOARGS, NULL},
    {"take_exemplars", take_exemplars, METH_NOARGS, NULL},
    {"take_stack_samples", take_stack_samples, METH_NOARGS, NULL},
    {"take_timeline", take_timeline, METH_NOARGS, NULL},
    {"end_interval", end_interval, METH_NOARGS, NULL},
    {"restart_exemplars", restart_exemplars, METH_NOARGS, NULL},
    {"losses", losses, METH_NOARGS, NULL},
    {"statement", statement, METH_O, NULL},
    {"path", path, METH_O, NULL},
    {"span", span, METH_O, NULL},
    {"thread", thread, METH_O, NULL},
    {"take_plans", take_plans, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
