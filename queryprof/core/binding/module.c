/* queryprof.core._core: the measuring core as a Python module. The stub _core.pyi describes what
 * each function takes and returns. */
#include "binding/module.h"

#include <stdatomic.h>

#include "attach/attach.h"
#include "calls/execution_samples.h"
#include "context/handoffs.h"
#include "counters/counters.h"
#include "counters/plans.h"
#include "loops/watchdog.h"
#include "recording/probe_cost.h"
#include "recording/recorder.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/thread_local.h"
#include "sql/normal_form.h"
#include "stacks/call_paths.h"
#include "stacks/code_owners.h"
#include "stacks/frames.h"
#include "wrappers/coroutine_proxy.h"
#include "wrappers/module_state.h"
#include "wrappers/wrapper.h"

static PyObject *text_or_none(const char *text)
{
    return Py_BuildValue("z", text);
}

bool qp_require_recording(void)
{
    if (!qp_recorder_is_on()) {
        PyErr_SetString(PyExc_RuntimeError, "the recorder is off");
        return false;
    }
    return true;
}

static PyObject *start(PyObject *Py_UNUSED(module), PyObject *args)
{
    int keep_parameters;
    if (!PyArg_ParseTuple(args, "p:start", &keep_parameters)) {
        return NULL;
    }
    if (qp_recorder_is_on()) {
        PyErr_SetString(PyExc_RuntimeError, "the recorder is on already");
        return NULL;
    }
    if (qp_recorder_start() < 0) {
        return NULL;
    }
    qp_executions_keep_parameters(keep_parameters);
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (qp_recorder_is_on()) {
        qp_recorder_stop();
        qp_executions_keep_parameters(false);
    }
    Py_RETURN_NONE;
}

static PyObject *is_on(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(qp_recorder_is_on());
}

static PyObject *configure(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *prefixes, *directory;
    int frames, typed_in;
    if (!PyArg_ParseTuple(args, "O!iUp:configure", &PyList_Type, &prefixes, &frames, &directory,
                          &typed_in) ||
        !qp_require_recording() || qp_code_owners_configure(prefixes, directory, typed_in) < 0) {
        return NULL;
    }
    qp_call_paths_configure(frames);
    Py_RETURN_NONE;
}

static PyObject *operation_names(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *names = PyTuple_New(QP_OPERATIONS);
    for (int i = 0; names && i < QP_OPERATIONS; i++) {
        PyObject *name = PyUnicode_FromString(qp_operations[i].name);
        if (!name) {
            Py_CLEAR(names);
            break;
        }
        PyTuple_SET_ITEM(names, i, name);
    }
    return names;
}

/* Returns whether a call of the operation drops the statements that it prepares. */
static bool drops_statements(qp_operation operation)
{
    return operation == QP_EXECUTESCRIPT || operation == QP_COMMIT || operation == QP_ROLLBACK ||
           operation == QP_EXIT;
}

static PyObject *attach(PyObject *module, PyObject *args)
{
    PyObject *owner, *name, *cursor_type, *attribute = NULL;
    int operation, has_own_sqlite, system = QP_SYSTEM_SQLITE, returns = QP_RETURNS_CURSOR;
    if (!PyArg_ParseTuple(args, "OUiOp|iiO:attach", &owner, &name, &operation, &cursor_type,
                          &has_own_sqlite, &system, &returns, &attribute)) {
        return NULL;
    }
    if (operation < 0 || operation >= QP_OPERATIONS || returns < 0 || returns >= QP_RETURNS) {
        return PyErr_Format(PyExc_ValueError, "no operation %d, result %d", operation, returns);
    }
    if (system < 0 || system >= QP_SYSTEMS) {
        return PyErr_Format(PyExc_ValueError, "no database system %d", system);
    }
    bool is_wait = operation == QP_POOL_WAIT; /* if true, `attribute` is the tuple only_if */
    bool is_wrong = attribute && !(is_wait ? PyTuple_Check(attribute) : PyUnicode_Check(attribute));
    if (is_wrong || (cursor_type != Py_None && (attribute || !PyType_Check(cursor_type)))) {
        return PyErr_Format(PyExc_TypeError, "cursor_type is no type: %R", cursor_type);
    }
    qp_probe probe = {.operation = (qp_operation)operation,
                      .source = qp_operations[operation].source,
                      .system = (qp_system)system,
                      .drops = has_own_sqlite || drops_statements((qp_operation)operation),
                      .has_own_sqlite = has_own_sqlite,
                      .returns = (qp_result_kind)returns,
                      .text_of = is_wait ? NULL : attribute,
                      .only_if = is_wait ? attribute : NULL,
                      .cursor_type = cursor_type == Py_None ? NULL : (PyTypeObject *)cursor_type};
    return qp_attach(owner, name, &probe, PyModule_GetState(module));
}

static PyObject *detach(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    if (qp_detach(capsule) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *counters_start(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *library;
    PyObject *connection;
    if (!PyArg_ParseTuple(args, "zO:counters_start", &library, &connection)) {
        return NULL;
    }
    return text_or_none(qp_counters_start(library, connection));
}

static PyObject *file_work_unknown_reason(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return text_or_none(qp_file_work_unknown_reason());
}

static PyObject *counters_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    qp_counters_stop();
    Py_RETURN_NONE;
}

static PyObject *counters_start_private(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return text_or_none(qp_counters_start_private());
}

static PyObject *set_plan_time_share(PyObject *Py_UNUSED(module), PyObject *share)
{
    double value = PyFloat_AsDouble(share);
    if (value == -1.0 && PyErr_Occurred()) {
        return NULL;
    }
    return PyFloat_FromDouble(qp_plans_set_time_share(value));
}

static PyObject *requested_plan_count(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLongLong(qp_plans_requested_count());
}

static PyObject *set_muted(PyObject *Py_UNUSED(module), PyObject *args)
{
    int muted;
    if (!PyArg_ParseTuple(args, "p:set_muted", &muted)) {
        return NULL;
    }
    bool before = qp_here.muted;
    qp_here.muted = muted;
    return PyBool_FromLong(before);
}

static PyObject *normal_form(PyObject *Py_UNUSED(module), PyObject *sql)
{
    Py_ssize_t length;
    if (!PyUnicode_Check(sql)) {
        return PyErr_Format(PyExc_TypeError, "SQL is a str, not %s", Py_TYPE(sql)->tp_name);
    }
    PyObject *bytes = PyUnicode_AsEncodedString(sql, "utf-8", "backslashreplace");
    char *out = bytes ? qp_allocate(QP_STATEMENT_BYTES, 1) : NULL;
    PyObject *text = NULL;
    if (out) {
        length = (Py_ssize_t)qp_write_normal_form(
            PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes), QP_SQLITE, QP_TEXT_SQL, out);
        text = PyUnicode_DecodeUTF8(out, length, "replace");
    } else if (bytes) {
        PyErr_NoMemory();
    }
    qp_free(out);
    Py_XDECREF(bytes);
    return text;
}

static PyObject *histogram_bucket(PyObject *Py_UNUSED(module), PyObject *ns)
{
    long long value = PyLong_AsLongLong(ns);
    if (value == -1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromLong(qp_histogram_bucket(value));
}

static PyObject *clock_source(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return Py_BuildValue("(sd)", qp_clock.counter ? "time-stamp counter" : "monotonic clock",
                         qp_clock.ns_per_tick);
}

static PyObject *frames_are_direct(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(qp_frames_are_direct());
}

static PyObject *use_public_frames(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    qp_frames_use_public();
    Py_RETURN_NONE;
}

static PyObject *use_system_clock(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    qp_clock_use_system();
    Py_RETURN_NONE;
}

static PyObject *probe_cost_ns(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return qp_require_recording() ? PyFloat_FromDouble(qp_probe_cost_ns()) : NULL;
}

static PyObject *memory_fence(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    atomic_thread_fence(memory_order_seq_cst);
    Py_RETURN_NONE;
}

static PyObject *after_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    qp_watchdog_after_fork();
    if (qp_recorder_is_on()) {
        qp_recorder_after_fork();
    }
    Py_RETURN_NONE;
}

#ifdef QP_FAULT_INJECTION
static PyObject *set_clock_ns(PyObject *Py_UNUSED(module), PyObject *number)
{
    long long ns = PyLong_AsLongLong(number);
    if (ns == -1 && PyErr_Occurred()) {
        return NULL;
    }
    qp_clock_freeze(ns);
    Py_RETURN_NONE;
}

static PyObject *fail_allocation_after(PyObject *Py_UNUSED(module), PyObject *args)
{
    long successes;
    if (!PyArg_ParseTuple(args, "l:fail_allocation_after", &successes)) {
        return NULL;
    }
    qp_fail_allocation_after(successes);
    Py_RETURN_NONE;
}
#endif

static PyMethodDef functions[] = {
    {"start", start, METH_VARARGS, NULL},
    {"stop", stop, METH_NOARGS, NULL},
    {"is_on", is_on, METH_NOARGS, NULL},
    {"configure", configure, METH_VARARGS, NULL},
    {"operation_names", operation_names, METH_NOARGS, NULL},
    {"attach", attach, METH_VARARGS, NULL},
    {"detach", detach, METH_O, NULL},
    {"counters_start", counters_start, METH_VARARGS, NULL},
    {"file_work_unknown_reason", file_work_unknown_reason, METH_NOARGS, NULL},
    {"counters_stop", counters_stop, METH_NOARGS, NULL},
    {"counters_start_private", counters_start_private, METH_NOARGS, NULL},
    {"set_plan_time_share", set_plan_time_share, METH_O, NULL},
    {"requested_plan_count", requested_plan_count, METH_NOARGS, NULL},
    {"set_muted", set_muted, METH_VARARGS, NULL},
    {"normal_form", normal_form, METH_O, NULL},
    {"histogram_bucket", histogram_bucket, METH_O, NULL},
    {"clock_source", clock_source, METH_NOARGS, NULL},
    {"frames_are_direct", frames_are_direct, METH_NOARGS, NULL},
    {"use_public_frames", use_public_frames, METH_NOARGS, NULL},
    {"use_system_clock", use_system_clock, METH_NOARGS, NULL},
    {"probe_cost_ns", probe_cost_ns, METH_NOARGS, NULL},
    {"memory_fence", memory_fence, METH_NOARGS, NULL},
    {"after_fork", after_fork, METH_NOARGS, NULL},
#ifdef QP_FAULT_INJECTION
    {"fail_allocation_after", fail_allocation_after, METH_VARARGS, NULL},
    {"set_clock_ns", set_clock_ns, METH_O, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

/* The tables are per process: only the main interpreter records. Other interpreters get an
 * ImportError, whose name lets code that loads queryprof automatically ignore the error. */
static int refuse_other_interpreters(void)
{
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) {
        return 0;
    }
    PyObject *message = PyUnicode_FromString("queryprof records the main interpreter alone");
    PyObject *name = PyUnicode_FromString("queryprof.subinterpreter");
    if (message && name) {
        PyErr_SetImportError(message, name, NULL);
    }
    Py_XDECREF(message);
    Py_XDECREF(name);
    return -1;
}

static int execute(PyObject *module)
{
    if (refuse_other_interpreters() < 0) {
        return -1;
    }
    qp_clock_prepare();
    qp_module_state *state = PyModule_GetState(module);
    state->wrapper_type = qp_wrapper_type(module);
    state->coroutine_proxy_type = qp_coroutine_proxy_type(module);
    state->handoff_type = qp_handoff_type(module);
    if (!state->wrapper_type || !state->coroutine_proxy_type || !state->handoff_type ||
        PyModule_AddFunctions(module, qp_table_functions) < 0 ||
        PyModule_AddFunctions(module, qp_work_functions) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, qp_loop_functions);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    qp_module_state *state = PyModule_GetState(module);
    Py_VISIT(state->wrapper_type);
    Py_VISIT(state->coroutine_proxy_type);
    Py_VISIT(state->handoff_type);
    return 0;
}

static int clear(PyObject *module)
{
    qp_module_state *state = PyModule_GetState(module);
    Py_CLEAR(state->wrapper_type);
    Py_CLEAR(state->coroutine_proxy_type);
    Py_CLEAR(state->handoff_type);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED}, /* to refuse with an
                                                                           * ImportError */
#endif
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* importing the module must not change the program */
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "queryprof.core._core",
    .m_doc = "The measuring core of queryprof.",
    .m_size = sizeof(qp_module_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
