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
    qp_region_share_in(PyBytes_AS_STRING(directories), PyBytes_AS_STRING(name));
    qp_parts_in(PyBytes_AS_STRING(parts));
    Py_DECREF(directories);
    Py_DECREF(name);
    Py_DECREF(parts);
    Py_RETURN_NONE;
}

static PyObject *checkpoint_to(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path;
    double interval_s;
    int if_own;
    if (!PyArg_ParseTuple(args, "O&dp:checkpoint_to", PyUnicode_FSConverter, &path, &interval_s,
                          &if_own)) {
        return NULL;
    }
    if (!qp_require_recording()) {
        Py_DECREF(path);
        return NULL;
    }
    qp_region_identify();
    qp_checkpoint_to(PyBytes_AS_STRING(path), interval_s, if_own);
    Py_DECREF(path);
    Py_RETURN_NONE;
}

static PyObject *workload_to(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *prefix;
    long long most_bytes;
    if (!PyArg_ParseTuple(args, "O&L:workload_to", PyUnicode_FSConverter, &prefix, &most_bytes)) {
        return NULL;
    }
    bool good = qp_require_recording();
    if (good && !qp_workload_to(PyBytes_AS_STRING(prefix), most_bytes)) {
        PyErr_NoMemory();
        good = false;
    }
    Py_DECREF(prefix);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *make_region(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (qp_share_awaited) {
        qp_region_share();
    }
    Py_RETURN_NONE;
}

static PyObject *last_part(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLong(qp_parts_next() - 1);
}

static PyObject *end_part(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? PyBool_FromLong(qp_recorder_end_part()) : NULL;
}

static PyObject *windows(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long length_ns;
    unsigned kept;
    if (!PyArg_ParseTuple(args, "LI:windows", &length_ns, &kept) || !qp_require_recording()) {
        return NULL;
    }
    return qp_windows_of(length_ns, kept) ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

static PyObject *hold_windows(PyObject *Py_UNUSED(module), PyObject *is_held)
{
    qp_windows_hold(is_held == Py_True);
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
    errno = qp_part_error();
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *end_region(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (!qp_require_recording()) {
        return NULL;
    }
    qp_recorder_flush_last();
    qp_head->state = QP_REGION_ENDED;
    Py_RETURN_NONE;
}

static PyObject *set_facts(PyObject *Py_UNUSED(module), PyObject *facts)
{
    if (!PyUnicode_Check(facts)) {
        return PyErr_Format(PyExc_TypeError, "facts are a str, not %s", Py_TYPE(facts)->tp_name);
    }
    if (!qp_require_recording()) {
        return NULL;
    }
    qp_text text = qp_text_of_str(facts);
    qp_head->facts =
        text == QP_TEXT_FULL ? qp_head->facts : text; /* keep the last facts if the table is full */
    Py_RETURN_NONE;
}

static PyObject *changes(PyObject *Py_UNUSED(module), PyObject *watches)
{
    if (!qp_require_recording()) {
        return NULL;
    }
    qp_recorder_flush();
    return qp_changes_drain(watches == Py_True);
}

static PyObject *plans_met(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? qp_plans_met() : NULL;
}

static PyObject *take_all_stacks(PyObject *Py_UNUSED(module), PyObject *all)
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
    {"checkpoint_to", checkpoint_to, METH_VARARGS, NULL},
    {"workload_to", workload_to, METH_VARARGS, NULL},
    {"make_region", make_region, METH_NOARGS, NULL},
    {"last_part", last_part, METH_NOARGS, NULL},
    {"end_part", end_part, METH_NOARGS, NULL},
    {"windows", windows, METH_VARARGS, NULL},
    {"hold_windows", hold_windows, METH_O, NULL},
    {"end_window", end_window, METH_O, NULL},
    {"set_wall_clock", set_wall_clock, METH_O, NULL},
    {"write_last_part", write_last_part, METH_NOARGS, NULL},
    {"end_region", end_region, METH_NOARGS, NULL},
    {"set_facts", set_facts, METH_O, NULL},
    {"changes", changes, METH_O, NULL},
    {"plans_met", plans_met, METH_NOARGS, NULL},
    {"take_all_stacks", take_all_stacks, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
