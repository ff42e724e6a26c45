#include "loops/asyncio_handles.h"

#include <structmember.h>

#include "loops/stalls.h"
#include "loops/steps.h"
#include "runtime/clock.h"
#include "runtime/exception.h"
#include "stacks/task_creators.h"
#include "wrappers/wrapper.h"

enum { WRAPPERS = 4 /* how many nested bound methods and partials to unwrap */ };

static struct {
    PyTypeObject *handle_type; /* owned, like all objects here; NULL if not attached to asyncio */
    PyTypeObject *timer_type;
    PyTypeObject *task_type;
    PyTypeObject *heartbeat_type;
    PyTypeObject *partial_type;
    Py_ssize_t callback; /* byte offsets of a handle's slots: callback to cancelled */
    Py_ssize_t args;
    Py_ssize_t context;
    Py_ssize_t loop;
    Py_ssize_t cancelled;
    Py_ssize_t when;           /* byte offset of a timer's slot */
    Py_ssize_t partial;        /* offset of a partial object's function */
    PyCFunction get_coroutine; /* a task's get_coro method */
} known;

static PyObject **slot_address(PyObject *object, Py_ssize_t offset)
{
    return (PyObject **)((char *)object + offset);
}

/* Returns the byte offset of an attribute that a type stores in a slot; 0 with an exception. */
static Py_ssize_t slot_offset(PyTypeObject *type, const char *name)
{
    PyObject *member = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t offset = 0;
    if (member && Py_TYPE(member) == &PyMemberDescr_Type) {
        offset = ((PyMemberDescrObject *)member)->d_member->offset;
    } else if (member) {
        PyErr_Format(PyExc_TypeError, "%s.%s is no slot", type->tp_name, name);
    }
    Py_XDECREF(member);
    return offset;
}

static bool is_heartbeat(PyObject *handle)
{
    bool is_known = known.handle_type && PyObject_TypeCheck(handle, known.handle_type);
    PyObject *callback = is_known ? *slot_address(handle, known.callback) : NULL;
    return callback && Py_TYPE(callback) == known.heartbeat_type;
}

static bool read_timer(PyObject *timer, double *due_s)
{
    bool is_known = known.handle_type && PyObject_TypeCheck(timer, known.timer_type);
    PyObject *when = is_known ? *slot_address(timer, known.when) : NULL;
    if (!when || !PyFloat_CheckExact(when) || *slot_address(timer, known.cancelled) == Py_True ||
        !*slot_address(timer, known.callback) || is_heartbeat(timer)) {
        return false;
    }
    *due_s = PyFloat_AS_DOUBLE(when);
    return true;
}

/* Returns a new reference to the code of a task's coroutine; NULL if it has none, without an
 * exception. */
static PyObject *task_code(PyObject *task)
{
    PyObject *coroutine = known.get_coroutine(task, NULL);
    PyObject *code = NULL;
    if (coroutine && PyCoro_CheckExact(coroutine)) {
#if PY_VERSION_HEX >= 0x030C0000
        code = (PyObject *)PyGen_GetCode((PyGenObject *)coroutine);
#else
        code = Py_NewRef(((PyGenObject *)coroutine)->gi_code);
#endif
    }
    if (!coroutine) {
        qp_exception_clear();
    }
    Py_XDECREF(coroutine);
    return code;
}

/* Returns the getter of a step callback's task: __self__ of the callback type that asyncio's C
 * tasks use. NULL for another type. */
static QP_COLD const PyGetSetDef *step_task_getter(const PyTypeObject *type)
{
    const char *dot = strrchr(type->tp_name, '.');
    const PyGetSetDef *found = NULL;
    if (strcmp(dot ? dot + 1 : type->tp_name, "TaskStepMethWrapper") == 0) {
        for (const PyGetSetDef *def = type->tp_getset; def && def->name; def++) {
            found = strcmp(def->name, "__self__") == 0 ? def : found;
        }
    }
    return found;
}

/* Returns the task that a callback of asyncio drives (borrowed), or NULL. */
static QP_INLINE PyObject *callback_task(PyObject *callback)
{
    static PyTypeObject *step_type; /* owned; the last type that was found */
    static const PyGetSetDef *step_self;
    if (PyCFunction_CheckExact(callback)) {
        PyObject *self = PyCFunction_GET_SELF(callback);
        return PyObject_TypeCheck(self, known.task_type) ? self : NULL;
    }
    if (Py_TYPE(callback) != step_type) {
        const PyGetSetDef *found = step_task_getter(Py_TYPE(callback));
        if (!found) {
            return NULL;
        }
        Py_XSETREF(step_type, (PyTypeObject *)Py_NewRef((PyObject *)Py_TYPE(callback)));
        step_self = found;
    }
    PyObject *self = step_self->get(callback, step_self->closure);
    if (!self) {
        qp_exception_clear();
        return NULL;
    }
    Py_DECREF(self); /* the callback keeps the task */
    return PyObject_TypeCheck(self, known.task_type) ? self : NULL;
}

/* Returns the identity of a callback: a new reference to its code object or, without code, to the
 * callable. */
static QP_INLINE PyObject *callback_code(PyObject *callback)
{
    for (int depth = 0; depth < WRAPPERS; depth++) {
        if (PyMethod_Check(callback)) {
            callback = PyMethod_GET_FUNCTION(callback);
        } else if (Py_TYPE(callback) == known.partial_type) {
            callback = *slot_address(callback, known.partial);
        }
    }
    if (PyFunction_Check(callback)) {
        return Py_NewRef(PyFunction_GET_CODE(callback));
    }
    PyObject *task = callback_task(callback);
    PyObject *code = task ? task_code(task) : NULL;
    return code ? code : Py_NewRef(callback);
}

static void begin_step(qp_step *step, qp_running_loop *running_loop, PyObject *handle,
                       PyObject *callback)
{
    PyObject *what = callback_code(callback);
    step->callback = callback;
    double due_s;
    if (PyCode_Check(what)) {
        qp_step_begin(step, running_loop, what, what, what);
    } else if (PyCFunction_Check(what)) {
        qp_step_begin(step, running_loop, ((PyCFunctionObject *)what)->m_ml, NULL, what);
    } else {
        PyObject *type = (PyObject *)Py_TYPE(what);
        qp_step_begin(step, running_loop, type, type, what);
    }
    Py_DECREF(what);
    if (Py_TYPE(handle) == known.timer_type && running_loop->has_clock &&
        read_timer(handle, &due_s)) {
        int64_t lag_ns = qp_ticks_to_monotonic_ns(step->start_ticks) - (int64_t)(due_s * 1e9);
        qp_loop_add_timer_lag(running_loop->loop, lag_ns > 0 ? lag_ns : 0);
    }
}

/* Returns the task of a step, or NULL. If `step` is NULL, uses the current step of the running
 * thread's loop. Keeps the exception that is set, because a query may have raised it. */
static const void *running_task(const qp_step *step)
{
    const qp_running_loop *running_loop = step ? NULL : qp_running_loop_here();
    step = running_loop ? running_loop->step : step;
    if (!step || !step->callback || !known.handle_type) {
        return NULL;
    }
    qp_exception exception = qp_exception_take();
    const void *task = callback_task(step->callback);
    qp_exception_put_back(&exception);
    return task;
}

/* Temporarily replaces the context of a handle whose callback raised. Its `run` restores the handle
 * and raises the exception again. */
typedef struct {
    PyObject_HEAD PyObject *handle; /* owned, like all objects here; the program's handle */
    PyObject *context;
    PyObject *args;
    qp_exception exception;
} raiser;

static void restore_handle(raiser *self)
{
    if (self->context) {
        PyObject *stand_in = *slot_address(self->handle, known.context);
        PyObject *args = *slot_address(self->handle, known.args);
        *slot_address(self->handle, known.context) = self->context;
        *slot_address(self->handle, known.args) = self->args;
        self->context = self->args = NULL;
        Py_XDECREF(args);
        Py_XDECREF(stand_in);
    }
}

static PyObject *raise_again(PyObject *object, PyObject *Py_UNUSED(args))
{
    raiser *self = (raiser *)Py_NewRef(object); /* the handle may have held the only reference */
    restore_handle(self);
    qp_exception_put_back(&self->exception);
    self->exception = (qp_exception){0};
    Py_DECREF((PyObject *)self);
    return NULL;
}

static int raiser_clear(PyObject *object)
{
    raiser *self = (raiser *)object;
    Py_CLEAR(self->handle);
    Py_CLEAR(self->context);
    Py_CLEAR(self->args);
    qp_exception_drop(&self->exception);
    return 0;
}

static void raiser_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    raiser_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef raiser_methods[] = {
    {"run", (PyCFunction)raise_again, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot raiser_slots[] = {
    {Py_tp_dealloc, raiser_dealloc},
    {Py_tp_methods, raiser_methods},
    {0, NULL},
};

static PyType_Spec raiser_spec = {
    .name = "queryprof.core._core.Raiser",
    .basicsize = sizeof(raiser),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = raiser_slots,
};

static PyTypeObject *raiser_type; /* owned; made with the first runner */

/* Passes the exception that is set to asyncio's own function, which handles it. */
static QP_COLD PyObject *pass_to_asyncio(const qp_wrapper *runner, PyObject *handle)
{
    qp_exception exception = qp_exception_take();
    raiser *stand_in = (raiser *)raiser_type->tp_alloc(raiser_type, 0);
    /* A callback that has cancelled its own handle has cleared the arguments. */
    PyObject *args = stand_in ? PyTuple_New(0) : NULL;
    if (!args) {
        Py_XDECREF((PyObject *)stand_in);
        qp_exception_clear();
        qp_exception_put_back(&exception);
        return NULL;
    }
    if (PyTuple_CheckExact(*slot_address(handle, known.args))) {
        Py_SETREF(args, Py_NewRef(*slot_address(handle, known.args)));
    }
    stand_in->handle = Py_NewRef(handle);
    stand_in->exception = exception;
    stand_in->context = *slot_address(handle, known.context);
    stand_in->args = *slot_address(handle, known.args);
    *slot_address(handle, known.context) = Py_NewRef((PyObject *)stand_in);
    *slot_address(handle, known.args) = args;
    PyObject *result = qp_wrapper_call(runner, &handle, 1, NULL);
    restore_handle(stand_in);
    Py_DECREF((PyObject *)stand_in);
    return result;
}

static PyObject *run_handle(PyObject *callable, PyObject *const *args, size_t flagged,
                            PyObject *names)
{
    const qp_wrapper *self = (qp_wrapper *)callable;
    PyObject *handle = PyVectorcall_NARGS(flagged) == 1 && !names ? args[0] : NULL;
    PyObject *context = handle && known.handle_type && PyObject_TypeCheck(handle, known.handle_type)
                            ? *slot_address(handle, known.context)
                            : NULL;
    if (!context || !PyContext_CheckExact(context) || !*slot_address(handle, known.callback) ||
        !*slot_address(handle, known.args) ||
        !PyTuple_CheckExact(*slot_address(handle, known.args))) {
        return qp_wrapper_call(self, args, flagged, names);
    }
    Py_INCREF(callable); /* the callback may detach us, or cancel the handle */
    Py_INCREF(context);
    PyObject *callback = Py_NewRef(*slot_address(handle, known.callback));
    PyObject *arguments = Py_NewRef(*slot_address(handle, known.args));
    qp_running_loop *running_loop = qp_running_loop_here();
    bool measured = running_loop && running_loop->object == *slot_address(handle, known.loop) &&
                    Py_TYPE(callback) != known.heartbeat_type;
    qp_step *step = measured ? qp_step_reserve() : NULL;
    if (step) {
        begin_step(step, running_loop, handle, callback);
    }
    PyObject *result = NULL;
    if (PyContext_Enter(context) == 0) {
        result = PyObject_Vectorcall(callback, &PyTuple_GET_ITEM(arguments, 0),
                                     (size_t)PyTuple_GET_SIZE(arguments), NULL);
        if (PyContext_Exit(context) < 0) {
            Py_CLEAR(result);
        }
    }
    uint64_t step_started_ticks = 0;
    if (step) {
        step_started_ticks = step->start_ticks;
        qp_step_end(step);
        qp_step_release(step);
    }
    if (!result) {
        result = pass_to_asyncio(self, handle);
    } else if (result != Py_None) {
        Py_SETREF(result, Py_NewRef(Py_None));
    }
    if (step && result && running_loop->start_beats &&
        !qp_running_loop_start_heartbeat(running_loop, step_started_ticks)) {
        Py_CLEAR(result);
    }
    Py_DECREF(arguments);
    Py_DECREF(callback);
    Py_DECREF(context);
    Py_DECREF(callable);
    return result;
}

/* Returns the C function of a type's method without arguments, or NULL. */
static PyCFunction method_function(PyTypeObject *type, const char *name)
{
    PyObject *method = PyObject_GetAttrString((PyObject *)type, name);
    PyCFunction function = NULL;
    if (method && Py_TYPE(method) == &PyMethodDescr_Type) {
        const PyMethodDef *definition = ((PyMethodDescrObject *)method)->d_method;
        function = definition->ml_flags == METH_NOARGS ? definition->ml_meth : NULL;
    }
    qp_exception_clear();
    Py_XDECREF(method);
    return function;
}

/* Returns the type of functools' partial objects (a new reference); NULL with an exception. */
static PyTypeObject *find_partial_type(void)
{
    PyObject *functools = PyImport_ImportModule("functools");
    PyObject *type = functools ? PyObject_GetAttrString(functools, "partial") : NULL;
    Py_XDECREF(functools);
    return (PyTypeObject *)type;
}

void qp_handles_clear(void)
{
    known.handle_type = NULL; /* the types stay, because a step may be in progress */
}

PyObject *qp_handle_run_wrapper(PyTypeObject *stand_in_type, PyObject *original,
                                PyTypeObject *handle_type, PyTypeObject *timer_type,
                                PyTypeObject *task_type, PyTypeObject *heartbeat_type)
{
    if (!raiser_type) {
        raiser_type = (PyTypeObject *)PyType_FromSpec(&raiser_spec);
    }
    if (!known.partial_type) {
        known.partial_type = raiser_type ? find_partial_type() : NULL;
    }
    if (!known.partial_type) {
        return NULL;
    }
    known.callback = slot_offset(handle_type, "_callback");
    known.args = known.callback ? slot_offset(handle_type, "_args") : 0;
    known.context = known.args ? slot_offset(handle_type, "_context") : 0;
    known.loop = known.context ? slot_offset(handle_type, "_loop") : 0;
    known.cancelled = known.loop ? slot_offset(handle_type, "_cancelled") : 0;
    known.when = known.cancelled ? slot_offset(timer_type, "_when") : 0;
    known.partial = known.when ? slot_offset(known.partial_type, "func") : 0;
    known.get_coroutine = method_function(task_type, "get_coro");
    if (!known.partial || !known.get_coroutine) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "asyncio's task has no get_coro");
        }
        return NULL;
    }
    Py_XSETREF(known.timer_type, (PyTypeObject *)Py_NewRef((PyObject *)timer_type));
    Py_XSETREF(known.task_type, (PyTypeObject *)Py_NewRef((PyObject *)task_type));
    Py_XSETREF(known.heartbeat_type, (PyTypeObject *)Py_NewRef((PyObject *)heartbeat_type));
    Py_INCREF((PyObject *)handle_type);
    known.handle_type = handle_type;
    qp_stalls_set_readers(read_timer, is_heartbeat);
    qp_task_creators_set_finder(running_task);
    return qp_wrapper_new(stand_in_type, run_handle, original, NULL);
}
