/* The module's functions about the memory of the recording: its address, its content, and its
 * changes. */
#include "binding/module.h"

#include "calls/workload.h"
#include "counters/plans.h"
#include "memory/changes.h"
#include "memory/region.h"
#include "memory/texts.h"
#include "recording/recorder.h"
#include "recording/windows.h"
#include "runtime/clock.h"
#include "sharing/checkpoint.h"
#include "sharing/parts.h"
#include "sharing/region_file.h"
#include "sharing/shared_region.h"
#include "sums/aggregates.h"
#include "sums/recent_calls.h"
#include "sums/samples.h"

static PyObject *flush(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (!qp_require_recording()) {
        return NULL;
    }
    qp_recorder_flush();
    Py_RETURN_NONE;
}

static PyObject *region(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    /* The memory stays mapped as long as the process runs. */
    return qp_require_recording()
               ? PyMemoryView_FromMemory((char *)qp_head, (Py_ssize_t)qp_region_bytes(), PyBUF_READ)
               : NULL;
}

static PyObject *has_recorded(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    enum { INITIAL_SPANS = 2 }; /* the span without a name, and "(other)": both always exist */
    return PyBool_FromLong(qp_row_count(QP_LOOP_ROWS) || qp_aggregates_have_calls() ||
                           qp_row_count(QP_SPAN_ROWS) > INITIAL_SPANS);
}

static PyObject *region_path(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyUnicode_DecodeFSDefault(qp_region_path());
}

static PyObject *share_region(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *directories, *name, *parts;
    if (!PyArg_ParseTuple(args, "O&O&O&:share_region", PyUnicode_FSConverter, &directories,
                          PyUnicode_FSConverter, &name, PyUnicode_FSConverter, &parts)) {
        return NULL;
    }
    qp_region_set_directories(PyBytes_AS_STRING(directories), PyBytes_AS_STRING(name));
    qp_parts_set_prefix(PyBytes_AS_STRING(parts));
    Py_DECREF(directories);
    Py_DECREF(name);
    Py_DECREF(parts);
    Py_RETURN_NONE;
}

static PyObject *configure_checkpoints(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path;
    double interval_s;
    int if_own;
    if (!PyArg_ParseTuple(args, "O&dp:configure_checkpoints", PyUnicode_FSConverter, &path,
                          &interval_s, &if_own)) {
        return NULL;
    }
    if (!qp_require_recording()) {
        Py_DECREF(path);
        return NULL;
    }
    qp_region_write_identity();
    qp_checkpoint_configure(PyBytes_AS_STRING(path), interval_s, if_own);
    Py_DECREF(path);
    Py_RETURN_NONE;
}

static PyObject *set_recent_calls(PyObject *Py_UNUSED(module), PyObject *calls)
{
    long value = PyLong_AsLong(calls);
    if (value == -1 && PyErr_Occurred()) {
        return NULL;
    }
    qp_recent_calls_configure(value < 0 ? 0 : (uint32_t)value);
    Py_RETURN_NONE;
}

static PyObject *set_workload_prefix(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *prefix;
    long long most_bytes;
    if (!PyArg_ParseTuple(args, "O&L:set_workload_prefix", PyUnicode_FSConverter, &prefix,
                          &most_bytes)) {
        return NULL;
    }
    bool good = qp_require_recording();
    if (good && !qp_workload_set_prefix(PyBytes_AS_STRING(prefix), most_bytes)) {
        PyErr_NoMemory();
        good = false;
    }
    Py_DECREF(prefix);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *share_region_if_due(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (qp_share_awaited) {
        qp_region_share();
    }
    Py_RETURN_NONE;
}

static PyObject *last_part_number(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLong(qp_parts_next_number() - 1);
}

static PyObject *end_part(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? PyBool_FromLong(qp_recorder_end_part()) : NULL;
}

static PyObject *configure_windows(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long length_ns;
    unsigned kept;
    if (!PyArg_ParseTuple(args, "LI:configure_windows", &length_ns, &kept) ||
        !qp_require_recording()) {
        return NULL;
    }
    return qp_windows_configure(length_ns, kept) ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

static PyObject *prevent_window_removal(PyObject *Py_UNUSED(module), PyObject *is_held)
{
    qp_windows_prevent_removal(is_held == Py_True);
    Py_RETURN_NONE;
}

static PyObject *end_window(PyObject *Py_UNUSED(module), PyObject *unix_ns)
{
    int64_t ns = PyLong_AsLongLong(unix_ns);
    if (PyErr_Occurred() || !qp_require_recording()) {
        return NULL;
    }
    qp_clock_set_wall(ns);
    qp_recorder_end_window(ns);
    Py_RETURN_NONE;
}

static PyObject *set_wall_clock(PyObject *Py_UNUSED(module), PyObject *unix_ns)
{
    int64_t ns = PyLong_AsLongLong(unix_ns);
    if (PyErr_Occurred()) {
        return NULL;
    }
    qp_clock_set_wall(ns);
    Py_RETURN_NONE;
}

static PyObject *write_last_part(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (!qp_require_recording()) {
        return NULL;
    }
    qp_windows_remove_oldest(true);
    if (qp_part_write_last()) {
        Py_RETURN_NONE;
    }
    errno = qp_part_write_errno();
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *mark_region_ended(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (!qp_require_recording()) {
        return NULL;
    }
    qp_recorder_flush_at_end();
    qp_head->state = QP_REGION_ENDED;
    Py_RETURN_NONE;
}

static PyObject *set_recording_facts(PyObject *Py_UNUSED(module), PyObject *facts)
{
    if (!PyUnicode_Check(facts)) {
        return PyErr_Format(PyExc_TypeError, "facts are a str, not %s", Py_TYPE(facts)->tp_name);
    }
    if (!qp_require_recording()) {
        return NULL;
    }
    qp_text text = qp_text_from_str(facts);
    if (text != QP_TEXT_FULL) { /* keep the previous facts if the text table is full */
        qp_head->facts = text;
    }
    Py_RETURN_NONE;
}

static PyObject *take_changed_rows(PyObject *Py_UNUSED(module), PyObject *watches)
{
    if (!qp_require_recording()) {
        return NULL;
    }
    qp_recorder_flush();
    return qp_changes_take_rows(watches == Py_True);
}

static PyObject *take_used_plans(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_plans_take_used() : NULL;
}

static PyObject *sample_all_stacks(PyObject *Py_UNUSED(module), PyObject *all)
{
    int takes_all = PyObject_IsTrue(all);
    if (takes_all < 0) {
        return NULL;
    }
    qp_stack_mask = takes_all ? 0 : QP_STACK_SAMPLING - 1;
    Py_RETURN_NONE;
}

PyMethodDef qp_table_functions[] = {
    {"flush", flush, METH_NOARGS, NULL},
    {"has_recorded", has_recorded, METH_NOARGS, NULL},
    {"region", region, METH_NOARGS, NULL},
    {"region_path", region_path, METH_NOARGS, NULL},
    {"share_region", share_region, METH_VARARGS, NULL},
    {"configure_checkpoints", configure_checkpoints, METH_VARARGS, NULL},
    {"set_recent_calls", set_recent_calls, METH_O, NULL},
    {"set_workload_prefix", set_workload_prefix, METH_VARARGS, NULL},
    {"share_region_if_due", share_region_if_due, METH_NOARGS, NULL},
    {"last_part_number", last_part_number, METH_NOARGS, NULL},
    {"end_part", end_part, METH_NOARGS, NULL},
    {"configure_windows", configure_windows, METH_VARARGS, NULL},
    {"prevent_window_removal", prevent_window_removal, METH_O, NULL},
    {"end_window", end_window, METH_O, NULL},
    {"set_wall_clock", set_wall_clock, METH_O, NULL},
    {"write_last_part", write_last_part, METH_NOARGS, NULL},
    {"mark_region_ended", mark_region_ended, METH_NOARGS, NULL},
    {"set_recording_facts", set_recording_facts, METH_O, NULL},
    {"take_changed_rows", take_changed_rows, METH_O, NULL},
    {"take_used_plans", take_used_plans, METH_NOARGS, NULL},
    {"sample_all_stacks", sample_all_stacks, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
