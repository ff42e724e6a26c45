/* The module's functions about event loops. */
#include "binding/module.h"

#include "context/task_runner.h"
#include "loops/asyncio_handles.h"
#include "loops/loops.h"
#include "loops/steps.h"
#include "loops/watchdog.h"
#include "runtime/clock.h"
#include "runtime/exception.h"
#include "wrappers/module_state.h"
#include "wrappers/wrapper.h"

static PyObject *handle_run_wrapper(PyObject *module, PyObject *args)
{
    PyObject *original;
    PyTypeObject *handle, *timer, *task, *heartbeat;
    if (!PyArg_ParseTuple(args, "OO!O!O!O!:handle_run_wrapper", &original, &PyType_Type, &handle,
                          &PyType_Type, &timer, &PyType_Type, &task, &PyType_Type, &heartbeat)) {
        return NULL;
    }
    qp_module_state *state = PyModule_GetState(module);
    return qp_handle_run_wrapper(state->wrapper_type, original, handle, timer, task, heartbeat);
}

static PyObject *clear_handle_types(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    qp_handles_clear();
    Py_RETURN_NONE;
}

/* Registers a loop that runs now. Returns its record, or NULL if the loop is not recorded. */
static qp_running_loop *register_loop(PyObject *kind, PyObject *loop, bool has_steps)
{
    bool muted = qp_here.muted; /* hooks attach while the thread is muted, but the loop belongs to
                                 * the program */
    qp_here.muted = false;
    qp_running_loop *running_loop =
        qp_thread_here() ? qp_running_loop_enter(kind, loop, has_steps) : NULL;
    qp_here.muted = muted;
    return running_loop;
}

/* Returns whether a loop uses its library's clock. With a different clock, the lag is unknown.
 * Never leaves an exception. */
static bool uses_library_clock(PyObject *loop, PyObject *time)
{
    PyObject *method = PyObject_GetAttrString(loop, "time");
    bool has = method && PyMethod_Check(method) && PyMethod_GET_FUNCTION(method) == time;
    qp_exception_clear();
    Py_XDECREF(method);
    return has;
}

/* Calls on_start(loop), which returns a callable for the loop's end, or None. Returns NULL if the
 * call failed; the exception stays set only if it belongs to the program (see
 * qp_own_exception_clear). */
static PyObject *call_on_start(PyObject *on_start, PyObject *loop)
{
    bool muted = qp_here.muted;
    qp_here.muted = true;
    PyObject *on_end = PyObject_CallOneArg(on_start, loop);
    qp_here.muted = muted;
    if (!on_end) {
        qp_own_exception_clear();
    }
    return on_end;
}

/* Calls the function that ends the heartbeat. If the function raises an exception of the program,
 * that exception replaces the current exception. Takes over the reference to `on_end` (may be
 * NULL). */
static void call_on_end(PyObject *on_end)
{
    qp_exception exception = qp_exception_take();
    PyObject *result = on_end && on_end != Py_None ? PyObject_CallNoArgs(on_end) : NULL;
    Py_XDECREF(result);
    Py_XDECREF(on_end);
    if (qp_own_exception_clear()) {
        qp_exception_put_back(&exception);
    } else {
        qp_exception_drop(&exception);
    }
}

/* Must be called when a loop starts. Starts the loop's heartbeat now, or requests the start at the
 * end of the first step that ends after a beat is due. */
static void start_heartbeat(qp_running_loop *running_loop, PyObject *loop, PyObject *extra)
{
    PyObject *on_start = PyTuple_GET_ITEM(extra, 2), *time = PyTuple_GET_ITEM(extra, 3);
    if (time == Py_None) {
        running_loop->end_beats = call_on_start(on_start, loop);
        running_loop->has_clock = running_loop->end_beats && running_loop->end_beats != Py_None;
        return;
    }
    running_loop->has_clock = uses_library_clock(loop, time);
    if (running_loop->has_clock) {
        double beat_s = PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(extra, 4));
        running_loop->beat_due_ticks =
            running_loop->settled_ticks + (uint64_t)qp_ns_to_ticks((int64_t)(beat_s * 1e9));
        running_loop->start_beats = Py_NewRef(on_start);
    }
}

/* Replaces a function that runs a loop until the loop stops. The loop is the function's first
 * argument. `extra` is (kind, has_steps, on_start, time, beat_s). */
static PyObject *run_loop(PyObject *callable, PyObject *const *args, size_t flagged,
                          PyObject *names)
{
    qp_wrapper *self = (qp_wrapper *)callable;
    Py_INCREF(callable); /* the loop may run until after we are detached */
    PyObject *extra = self->extra;
    qp_running_loop *running_loop = NULL;
    if (PyVectorcall_NARGS(flagged) > 0 && !qp_here.muted) {
        running_loop = register_loop(PyTuple_GET_ITEM(extra, 0), args[0],
                                     PyTuple_GET_ITEM(extra, 1) == Py_True);
    }
    if (running_loop) {
        start_heartbeat(running_loop, args[0], extra);
    }
    bool is_interrupted = PyErr_Occurred() != NULL;
    PyObject *result = is_interrupted ? NULL : qp_wrapper_call(self, args, flagged, names);
    if (running_loop) {
        PyObject *on_end = running_loop->end_beats;
        running_loop->end_beats = NULL;
        call_on_end(on_end);
        if (PyErr_Occurred()) {
            Py_CLEAR(result);
        }
    }
    qp_running_loop_leave(running_loop);
    Py_DECREF(callable);
    return result;
}

static PyObject *task_creation_wrapper(PyObject *module, PyObject *args)
{
    PyObject *original, *boundary;
    PyTypeObject *task_type;
    if (!PyArg_ParseTuple(args, "OO!O!:task_creation_wrapper", &original, &PyCode_Type, &boundary,
                          &PyType_Type, &task_type)) {
        return NULL;
    }
    return qp_task_creation_wrapper(module, original, (PyCodeObject *)boundary, task_type);
}

static PyObject *loop_run_wrapper(PyObject *module, PyObject *args)
{
    PyObject *original, *kind, *on_start, *time = Py_None;
    int has_steps;
    double beat_s = 0;
    if (!PyArg_ParseTuple(args, "OUpO|Od:loop_run_wrapper", &original, &kind, &has_steps, &on_start,
                          &time, &beat_s)) {
        return NULL;
    }
    PyObject *extra =
        Py_BuildValue("(OOOOd)", kind, has_steps ? Py_True : Py_False, on_start, time, beat_s);
    qp_module_state *state = PyModule_GetState(module);
    PyObject *runner =
        extra ? qp_wrapper_new(state->wrapper_type, run_loop, original, extra) : NULL;
    Py_XDECREF(extra);
    return runner;
}

static PyObject *register_running_loop(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *kind, *loop;
    int has_steps, adopted;
    if (!PyArg_ParseTuple(args, "UOpp:register_running_loop", &kind, &loop, &has_steps, &adopted)) {
        return NULL;
    }
    qp_running_loop *running_loop = register_loop(kind, loop, has_steps);
    if (running_loop) {
        running_loop->is_adopted = adopted;
    }
    return PyBool_FromLong(running_loop != NULL);
}

static PyObject *unregister_running_loop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    qp_running_loop_leave(qp_running_loop_here());
    Py_RETURN_NONE;
}

static PyObject *add_heartbeat_lag(PyObject *Py_UNUSED(module), PyObject *args)
{
    double lag_s;
    int times = 1;
    if (!PyArg_ParseTuple(args, "d|i:add_heartbeat_lag", &lag_s, &times)) {
        return NULL;
    }
    const qp_running_loop *running_loop = qp_running_loop_here();
    for (int i = 0; running_loop && i < times; i++) {
        qp_loop_add_heartbeat_lag(running_loop->loop, lag_s > 0 ? (int64_t)(lag_s * 1e9) : 0);
    }
    return PyLong_FromUnsignedLongLong(
        running_loop ? atomic_load_explicit(&running_loop->step_number, memory_order_relaxed) : 0);
}

static PyObject *add_timer_lag(PyObject *Py_UNUSED(module), PyObject *args)
{
    double lag_s;
    if (!PyArg_ParseTuple(args, "d:add_timer_lag", &lag_s)) {
        return NULL;
    }
    const qp_running_loop *running_loop = qp_running_loop_here();
    if (running_loop) {
        qp_loop_add_timer_lag(running_loop->loop, lag_s > 0 ? (int64_t)(lag_s * 1e9) : 0);
    }
    Py_RETURN_NONE;
}

/* For each running loop: the step in progress whose beginning and end a hook reports. */
static qp_step passed[QP_LANES];

static qp_step *step_reported_by_hook(const qp_running_loop *running_loop)
{
    int count;
    return &passed[running_loop - qp_running_loops(&count)];
}

static PyObject *begin_unseen_step(PyObject *Py_UNUSED(module), PyObject *args)
{
    double due_s;
    if (!PyArg_ParseTuple(args, "d:begin_unseen_step", &due_s)) {
        return NULL;
    }
    qp_running_loop *running_loop = qp_running_loop_here();
    if (running_loop) {
        if (running_loop->step == step_reported_by_hook(running_loop)) {
            qp_step_end(running_loop->step);
        }
        qp_step_begin_unseen(step_reported_by_hook(running_loop), running_loop,
                             qp_monotonic_ns_to_ticks((int64_t)(due_s * 1e9)));
    }
    Py_RETURN_NONE;
}

static qp_step *begin_loop_step(qp_running_loop *running_loop, PyObject *code)
{
    if (!running_loop || running_loop->step) {
        return NULL; /* this loop runs on another loop, which is already in a step */
    }
    qp_step_begin(step_reported_by_hook(running_loop), running_loop, code, code, code);
    return running_loop->step;
}

static PyObject *step_begin(PyObject *Py_UNUSED(module), PyObject *code)
{
    begin_loop_step(qp_running_loop_here(), code);
    Py_RETURN_NONE;
}

/* Replaces a function whose calls are steps. `extra` is its code object. */
static PyObject *run_step(PyObject *callable, PyObject *const *args, size_t flagged,
                          PyObject *names)
{
    const qp_wrapper *self = (qp_wrapper *)callable;
    qp_step *step = begin_loop_step(qp_running_loop_here(), self->extra);
    PyObject *result = qp_wrapper_call(self, args, flagged, names);
    if (step) {
        qp_step_end(step);
    }
    return result;
}

static PyObject *step_wrapper(PyObject *module, PyObject *original)
{
    PyObject *code = PyObject_GetAttrString(original, "__code__");
    qp_module_state *state = PyModule_GetState(module);
    PyObject *runner = code ? qp_wrapper_new(state->wrapper_type, run_step, original, code) : NULL;
    Py_XDECREF(code);
    return runner;
}

static PyObject *step_end(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    qp_running_loop *running_loop = qp_running_loop_here();
    if (running_loop && running_loop->step == step_reported_by_hook(running_loop)) {
        qp_step_end(running_loop->step);
    }
    Py_RETURN_NONE;
}

static PyObject *on_gc(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *phase;
    PyObject *info;
    if (!PyArg_ParseTuple(args, "sO:on_gc", &phase, &info)) {
        return NULL;
    }
    qp_running_loop *running_loop = qp_running_loop_here();
    if (running_loop && phase[2] == 'a') { /* start, not stop */
        running_loop->gc_started_ticks = qp_clock_ticks();
    } else if (running_loop && running_loop->gc_started_ticks) {
        running_loop->gc_ticks +=
            qp_elapsed_ticks(running_loop->gc_started_ticks, qp_clock_ticks());
        running_loop->gc_started_ticks = 0;
    }
    Py_RETURN_NONE;
}

static PyObject *watchdog_start(PyObject *Py_UNUSED(module), PyObject *args)
{
    double threshold_s;
    if (!PyArg_ParseTuple(args, "d:watchdog_start", &threshold_s) ||
        qp_watchdog_prepare(threshold_s, qp_step_sample) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *watchdog_stop(PyObject *Py_UNUSED(module), PyObject *args)
{
    double timeout_s;
    if (!PyArg_ParseTuple(args, "d:watchdog_stop", &timeout_s)) {
        return NULL;
    }
    qp_watchdog_stop(timeout_s);
    Py_RETURN_NONE;
}

PyMethodDef qp_loop_functions[] = {
    {"handle_run_wrapper", handle_run_wrapper, METH_VARARGS, NULL},
    {"clear_handle_types", clear_handle_types, METH_NOARGS, NULL},
    {"task_creation_wrapper", task_creation_wrapper, METH_VARARGS, NULL},
    {"loop_run_wrapper", loop_run_wrapper, METH_VARARGS, NULL},
    {"register_running_loop", register_running_loop, METH_VARARGS, NULL},
    {"unregister_running_loop", unregister_running_loop, METH_NOARGS, NULL},
    {"add_heartbeat_lag", add_heartbeat_lag, METH_VARARGS, NULL},
    {"add_timer_lag", add_timer_lag, METH_VARARGS, NULL},
    {"begin_unseen_step", begin_unseen_step, METH_VARARGS, NULL},
    {"step_begin", step_begin, METH_O, NULL},
    {"step_wrapper", step_wrapper, METH_O, NULL},
    {"step_end", step_end, METH_NOARGS, NULL},
    {"on_gc", on_gc, METH_VARARGS, NULL},
    {"watchdog_start", watchdog_start, METH_VARARGS, NULL},
    {"watchdog_stop", watchdog_stop, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
