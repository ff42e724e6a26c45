#include "context/handoffs.h"

#include <string.h>
#include <structmember.h>

#include "context/spans.h"
#include "context/submission.h"
#include "memory/histogram.h"
#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/exception.h"
#include "stacks/call_paths.h"
#include "stacks/submitter.h"
#include "threads/threads.h"
#include "wrappers/coroutine_proxy.h"
#include "wrappers/module_state.h"
#include "wrappers/wrapper.h"

enum { KINDS = 16, KIND_BYTES = 32 };

/* The names of kinds. They outlive recordings, because wrappers may outlive recordings. */
static struct {
    char names[KINDS][KIND_BYTES];
    int count;
} kinds;

void qp_handoffs_clear(void)
{
    qp_rows_clear(QP_HANDOFF_ROWS);
}

static qp_handoff_row *handoff_row(uint8_t kind, uint32_t path, uint16_t span)
{
    qp_handoff_row *rows = qp_first_row(QP_HANDOFF_ROWS);
    uint32_t count = qp_row_count(QP_HANDOFF_ROWS);
    qp_text name = qp_text_find_or_add(kinds.names[kind], strlen(kinds.names[kind]));
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].path == path && rows[i].kind == name && rows[i].span == span) {
            return &rows[i];
        }
    }
    uint32_t added = count < QP_HANDOFFS ? qp_rows_add(QP_HANDOFF_ROWS, 1) : UINT32_MAX;
    if (added == UINT32_MAX) {
        return count ? &rows[count - 1] : NULL;
    }
    bool is_last = added == QP_HANDOFFS - 1; /* the row for all others */
    rows[added] = (qp_handoff_row){
        .kind = name, .path = is_last ? QP_PATH_OTHER : path, .span = is_last ? 0 : span};
    return &rows[added];
}

/* A wrapped function. */
typedef struct {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *function;     /* owned */
    qp_submitter submitter; /* the submitter's `note` is owned */
    uint8_t kind;
    bool is_awaited;
    bool is_timed;
    bool is_database;
    bool failed;
    bool is_running; /* a concurrent run of the same function is not measured */
    bool was_run;
    bool abandoned; /* the coroutine that waits for the function was cancelled or dropped */
    bool concluded;
    uint64_t handed_ticks;
    uint64_t started_ticks;
    uint64_t ended_ticks;
    uint64_t taken_ticks; /* when the waiting coroutine got the result; 0 if it got no result, or if
                           * unknown */
} handoff;

/* Adds a handoff that has ended to the sums, once. */
static void add_to_sums(handoff *self)
{
    bool ours = qp_recording && self->submitter.recording == qp_recording && !self->concluded;
    self->concluded = true;
    if (!ours || !self->is_timed || (!self->submitter.calls && !self->is_database)) {
        return;
    }
    uint16_t span = (uint16_t)(self->submitter.span & 0xffff);
    qp_handoff_row *s = handoff_row(self->kind, self->submitter.path, span);
    if (!s) {
        return;
    }
    s->count++;
    s->errors += self->failed;
    s->cancelled += !self->was_run || self->abandoned;
    if (!self->was_run) {
        return;
    }
    qp_distribution_add(&s->queue,
                        qp_ticks_to_ns(qp_elapsed_ticks(self->handed_ticks, self->started_ticks)));
    qp_distribution_add(&s->run,
                        qp_ticks_to_ns(qp_elapsed_ticks(self->started_ticks, self->ended_ticks)));
    uint64_t end_ticks = self->ended_ticks;
    if (self->taken_ticks) {
        end_ticks = self->taken_ticks;
        qp_distribution_add(&s->handback,
                            qp_ticks_to_ns(qp_elapsed_ticks(self->ended_ticks, end_ticks)));
    }
    qp_distribution_add(&s->total, qp_ticks_to_ns(qp_elapsed_ticks(self->handed_ticks, end_ticks)));
}

static PyObject *run_handoff(PyObject *callable, PyObject *const *args, size_t flagged,
                             PyObject *names)
{
    handoff *self = (handoff *)callable;
    PyObject *function = Py_NewRef(self->function);
    Py_INCREF(callable);
    bool enters = !self->is_running;
    if (enters) {
        self->is_running = true;
        qp_submitter_begin_work(&self->submitter);
    }
    self->started_ticks = qp_clock_ticks();
    if (self->is_timed && qp_recording && self->submitter.recording == qp_recording) {
        qp_span_add_queue_time(self->submitter.span, self->handed_ticks, self->started_ticks);
    }
    PyObject *result = PyObject_Vectorcall(function, args, flagged, names);
    self->ended_ticks = qp_clock_ticks();
    if (enters) {
        qp_submitter_end_work(&self->submitter);
        self->is_running = false;
    }
    self->was_run = true;
    self->failed = !result;
    if (!self->is_awaited || self->abandoned) {
        add_to_sums(
            self); /* now, because a worker thread may keep the function until its next function */
    }
    Py_DECREF(function);
    Py_DECREF(callable);
    return result;
}

static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    return PyObject_GetAttr(((handoff *)self)->function, name);
}

static PyObject *represent(PyObject *self)
{
    return PyObject_Repr(((handoff *)self)->function);
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((handoff *)self)->function);
    Py_VISIT(((handoff *)self)->submitter.note);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((handoff *)self)->function);
    Py_CLEAR(((handoff *)self)->submitter.note);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    add_to_sums((handoff *)self);
    clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(handoff, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getattro, get_attribute},
    {Py_tp_repr, represent},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "queryprof.core._core.Handoff",
    .basicsize = sizeof(handoff),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyTypeObject *qp_handoff_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

/* Describes a callable to which functions are submitted. Stored in `extra` of the callable's
 * wrapper. */
typedef struct {
    uint8_t kind;
    Py_ssize_t position;
    bool is_awaited;
    bool is_timed;
    bool is_database;
    PyTypeObject *handoff_type; /* borrowed from the module, like the next field */
    PyTypeObject *coroutine_proxy_type;
} handover;

/* Returns the function together with its submitter (a new reference), or NULL, in which case the
 * function is submitted unchanged. */
static handoff *wrap_function(const handover *where, PyObject *function)
{
    qp_thread *thread = qp_thread_here();
    if (!thread) {
        return NULL;
    }
    handoff *self = (handoff *)where->handoff_type->tp_alloc(where->handoff_type, 0);
    if (!self) {
        qp_exception_clear();
        return NULL;
    }
    self->vectorcall = run_handoff;
    self->function = Py_NewRef(function);
    self->kind = where->kind;
    self->is_awaited = where->is_awaited;
    self->is_timed = where->is_timed;
    self->is_database = where->is_database;
    qp_submitter_capture(thread, &self->submitter);
    self->handed_ticks = qp_clock_ticks();
    return self;
}

/* The watcher of a coroutine that ends with the function's result. */
typedef struct {
    qp_watcher watcher;
    handoff *handoff; /* owned */
} waiter;

static void do_nothing(qp_watcher *Py_UNUSED(self)) {}

static void take_result(qp_watcher *self, PyObject *result)
{
    handoff *taken = ((waiter *)self)->handoff;
    if (taken->was_run && (result || taken->failed)) {
        taken->taken_ticks = qp_clock_ticks();
        add_to_sums(taken);
    } else {
        taken->abandoned = true;
    }
}

static void forget_waiter(qp_watcher *self)
{
    Py_DECREF((PyObject *)((waiter *)self)->handoff);
    qp_free(self);
}

/* Returns a proxy of the coroutine that notes when the function's result arrives; takes over the
 * reference. */
static PyObject *watch_coroutine(const handover *where, PyObject *coroutine, handoff *handed)
{
    waiter *w = PyCoro_CheckExact(coroutine) ? qp_allocate(1, sizeof *w) : NULL;
    if (!w) {
        return coroutine;
    }
    w->watcher = (qp_watcher){do_nothing, do_nothing, take_result, forget_waiter};
    w->handoff = (handoff *)Py_NewRef((PyObject *)handed);
    return qp_coroutine_proxy(where->coroutine_proxy_type, coroutine, &w->watcher);
}

static PyObject *submit_function(PyObject *callable, PyObject *const *args, size_t flagged,
                                 PyObject *names)
{
    enum { ROOM = 32 };
    qp_wrapper *self = (qp_wrapper *)callable;
    handover where;
    memcpy(&where, PyBytes_AS_STRING(self->extra), sizeof where);
    Py_INCREF(callable); /* the call may detach us */
    PyObject *own_args[ROOM];
    Py_ssize_t positional = PyVectorcall_NARGS(flagged);
    Py_ssize_t all = positional + (names ? PyTuple_GET_SIZE(names) : 0);
    handoff *handed = NULL;
    if (where.position < positional && all <= ROOM && PyCallable_Check(args[where.position])) {
        handed = wrap_function(&where, args[where.position]);
    }
    PyObject *result;
    if (handed) {
        memcpy(own_args, args, (size_t)all * sizeof *args);
        own_args[where.position] = (PyObject *)handed;
        result = qp_wrapper_call(self, own_args, (size_t)positional, names);
        if (result && where.is_awaited) {
            result = watch_coroutine(&where, result, handed);
        } else if (!result) {
            handed->is_timed = false; /* the function was not submitted */
        }
        Py_DECREF((PyObject *)handed);
    } else {
        result = qp_wrapper_call(self, args, flagged, names);
    }
    Py_DECREF(callable);
    return result;
}

/* Returns the number of a kind's name. If the table is full, returns the last number, which all
 * other kinds share. */
static uint8_t kind_number(const char *name)
{
    for (int i = 0; i < kinds.count; i++) {
        if (!strcmp(kinds.names[i], name)) {
            return (uint8_t)i;
        }
    }
    if (kinds.count == KINDS) {
        return KINDS - 1;
    }
    strncpy(kinds.names[kinds.count], name, KIND_BYTES - 1);
    return (uint8_t)kinds.count++;
}

PyObject *qp_handoff_wrapper(PyObject *module, PyObject *original, const char *kind,
                             Py_ssize_t position, bool is_awaited, bool is_timed, bool is_database)
{
    const qp_module_state *state = PyModule_GetState(module);
    handover where = {.kind = kind_number(kind),
                      .position = position,
                      .is_awaited = is_awaited,
                      .is_timed = is_timed,
                      .is_database = is_database,
                      .handoff_type = state->handoff_type,
                      .coroutine_proxy_type = state->coroutine_proxy_type};
    PyObject *extra = PyBytes_FromStringAndSize((const char *)&where, sizeof where);
    PyObject *runner =
        extra ? qp_wrapper_new(state->wrapper_type, submit_function, original, extra) : NULL;
    Py_XDECREF(extra);
    return runner;
}
