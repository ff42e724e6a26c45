#include "steps.h"

#include <string.h>

#include "allocation.h"
#include "assertion.h"
#include "callpath.h"
#include "code_lines.h"
#include "clock.h"
#include "compiler.h"
#include "flusher.h"
#include "stalls.h"
#include "watchdog.h"

enum { SUMS = 1024, SLOTS = 2 * SUMS };

static struct {
    qp_step_sums *sums; /* the first one stands for all others when the table is full */
    int count;
    uint16_t slots[SLOTS]; /* 1 + number of sums, by loop and identity; 0: none */
    uint64_t steps;        /* begun so far: their numbers */
} table;

static qp_step
    *free_steps; /* owned; they stay, for steps that are in progress when recording stops */

bool qp_steps_start(void)
{
    table.sums = qp_allocate(SUMS, sizeof *table.sums);
    return table.sums != NULL;
}

void qp_steps_stop(void)
{
    for (int i = 0; table.sums && i < table.count; i++) {
        Py_CLEAR(table.sums[i].keeper);
        Py_CLEAR(table.sums[i].described);
    }
    qp_release(table.sums);
    memset(&table, 0, sizeof table);
}

qp_step *qp_step_reserve(void)
{
    qp_step *step = free_steps;
    if (!step) {
        return qp_allocate(1, sizeof *step);
    }
    free_steps = step->outer;
    return step;
}

void qp_step_release(qp_step *step)
{
    QP_ASSERT(step->lane->step != step);
    step->outer = free_steps;
    free_steps = step;
}

/* A new tuple (function, file, line, kind); NULL with an exception. */
static QP_COLD PyObject *describe(PyObject *what)
{
    if (PyCode_Check(what)) {
        PyCodeObject *code = (PyCodeObject *)what;
        return Py_BuildValue("(OOii)", code->co_qualname, code->co_filename, code->co_firstlineno,
                             qp_code_kind(code));
    }
    if (PyCFunction_Check(what)) {
        return Py_BuildValue("(ssii)", ((PyCFunctionObject *)what)->m_ml->ml_name, "", 0,
                             QP_CODE_LIBRARY);
    }
    return Py_BuildValue("(ssii)", Py_TYPE(what)->tp_name, "", 0, QP_CODE_LIBRARY);
}

static uint32_t slot_of(const qp_loop *loop, const void *identity)
{
    uint64_t mixed = ((uintptr_t)identity ^ (uintptr_t)loop << 7) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(mixed >> 40) & (SLOTS - 1);
}

/* Sums for something that has not run before; those of all others when the table is full. */
static QP_COLD qp_step_sums *add_sums(qp_loop *loop, const void *identity, PyObject *keeper,
                                      PyObject *described)
{
    if (!table.count) {
        table.sums[table.count++] = (qp_step_sums){.loop = loop};
        table.sums[0].described = Py_BuildValue("(ssii)", "(other)", "", 0, QP_CODE_LIBRARY);
    }
    if (table.count == SUMS || !described) {
        PyErr_Clear(); /* what cannot be described is counted all the same */
        Py_XDECREF(described);
        return &table.sums[0];
    }
    uint32_t slot = slot_of(loop, identity);
    while (table.slots[slot]) {
        slot = (slot + 1) & (SLOTS - 1);
    }
    qp_step_sums *sums = &table.sums[table.count++];
    sums->identity = identity;
    sums->keeper = Py_XNewRef(keeper);
    sums->described = described;
    sums->loop = loop;
    table.slots[slot] = (uint16_t)table.count;
    return sums;
}

static inline qp_step_sums *find_sums(const qp_loop *loop, const void *identity)
{
    uint32_t slot = slot_of(loop, identity);
    for (; table.slots[slot]; slot = (slot + 1) & (SLOTS - 1)) {
        qp_step_sums *sums = &table.sums[table.slots[slot] - 1];
        if (sums->identity == identity && sums->loop == loop) {
            return sums;
        }
    }
    return NULL;
}

static QP_COLD void launch(void)
{
    if (qp_watchdog_awaited) {
        qp_watchdog_launch();
    }
    if (qp_flusher_awaited) {
        qp_flusher_launch();
    }
}

static inline void begin(qp_step *step, qp_lane *lane, uint64_t start_ticks)
{
    if (qp_watchdog_awaited || qp_flusher_awaited) {
        launch();
    }
    step->outer = lane->step;
    step->lane = lane;
    step->number = ++table.steps;
    step->gc_ticks_before = lane->gc_ticks;
    step->gil_ticks = 0;
    step->settled_ns = 0;
    step->sites = 0;
    step->causes.known = 0;
    step->causes.total_ticks = 0;
    step->longest_ticks = 0;
    step->start_ticks = start_ticks;
    lane->step = step;
    atomic_store_explicit(&lane->step_number, step->number, memory_order_relaxed);
    atomic_store_explicit(&lane->started_ticks, start_ticks, memory_order_release);
    if (atomic_load_explicit(&qp_watchdog_sleeps, memory_order_relaxed)) {
        qp_watchdog_wake();
    }
}

void qp_step_begin(qp_step *step, qp_lane *lane, const void *identity, PyObject *keeper,
                   PyObject *what)
{
    qp_step_sums *sums = find_sums(lane->loop, identity);
    step->sums = sums ? sums : add_sums(lane->loop, identity, keeper, describe(what));
    /* Py_SIZE of a deque is its length; all but the last added wait for this step. */
    step->waiting = lane->ready ? Py_SIZE(lane->ready) : 0;
    begin(step, lane, qp_clock_ticks());
}

void qp_step_await_beat(qp_step *step, qp_lane *lane, uint64_t due_ticks)
{
    step->sums = NULL;
    step->waiting = 0;
    begin(step, lane, due_ticks);
}

void qp_step_end(qp_step *step)
{
    uint64_t now = qp_clock_ticks();
    qp_lane *lane = step->lane;
    int64_t ns = qp_clock_ns(qp_clock_elapsed(step->start_ticks, now));
    if (!step->sums) { /* what is seen of a step that cannot be: it was no shorter than this */
        int64_t longest_ns = qp_clock_ns(step->longest_ticks);
        ns = longest_ns > ns ? longest_ns : ns;
    }
    lane->step = step->outer;
    atomic_store_explicit(&lane->started_ticks, step->outer ? step->outer->start_ticks : 0,
                          memory_order_release);
    if (step->outer) {
        atomic_store_explicit(&lane->step_number, step->outer->number, memory_order_relaxed);
    }
    if (lane->recording != qp_recording) {
        return; /* recording ended meanwhile */
    }
    qp_loop *loop = lane->loop;
    loop->changed = true;
    lane->last_ticks = now;
    qp_step_sums *sums = step->sums;
    if (sums) {
        loop->busy_ticks += step->outer ? 0 : qp_clock_elapsed(step->start_ticks, now);
        loop->steps++;
        loop->waiting += step->waiting;
        loop->waiting_max = step->waiting > loop->waiting_max ? step->waiting : loop->waiting_max;
        qp_distribution_add(&sums->durations, ns);
        sums->changed = true;
        sums->gc_ticks += lane->gc_ticks - step->gc_ticks_before;
        if (step->causes.total_ticks) {
            qp_causes_join(&sums->causes, &step->causes);
        }
    }
    if (ns >= qp_stall_ns || step->settled_ns) {
        qp_stall_settle(step, ns, true);
    }
}

/* Whether a lane's thread still has its state: a greenlet may wait in a step whose thread has
 * ended. */
static bool has_thread(const qp_lane *lane)
{
    PyThreadState *tstate = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    while (tstate &&
           (tstate != lane->thread->tstate ||
            (lane->kernel_id && tstate->native_thread_id != (unsigned long)lane->kernel_id))) {
        tstate = PyThreadState_Next(tstate);
    }
    return tstate != NULL;
}

void qp_step_sample(qp_lane *lane, uint64_t number, uint64_t asked_ticks)
{
    qp_step *step = lane->in_use && lane->recording == qp_recording ? lane->step : NULL;
    if (!step || step->number != number ||
        qp_clock_ns(qp_clock_elapsed(step->start_ticks, asked_ticks)) < qp_stall_ns ||
        !has_thread(lane)) {
        return; /* it has ended meanwhile */
    }
    PyThreadState *tstate = lane->thread->tstate;
    uint32_t path;
    qp_callpath_find(tstate, &path);
    step->gil_ticks += qp_clock_elapsed(asked_ticks, qp_clock_ticks());
    int at = 0;
    while (at < step->sites && step->site[at].path != path) {
        at++;
    }
    if (at == QP_STEP_SITES) {
        return;
    }
    if (at == step->sites) {
        step->site[step->sites++] = (qp_step_site){.path = path, .stack = qp_stack_find(tstate)};
    }
    step->site[at].hits++;
}

static PyObject *take(qp_step_sums *sums)
{
    int64_t database_ns = qp_clock_ns(sums->causes.total_ticks);
    PyObject *durations = qp_distribution_take(&sums->durations);
    PyObject *causes = durations ? qp_causes_take(&sums->causes) : NULL;
    if (!causes) {
        Py_XDECREF(durations);
        return NULL;
    }
    PyObject *row =
        Py_BuildValue("(iONLLN)", qp_loop_number(sums->loop), sums->described, durations,
                      (long long)database_ns, (long long)qp_clock_ns(sums->gc_ticks), causes);
    if (row) {
        sums->gc_ticks = 0;
        sums->changed = false;
    }
    return row;
}

PyObject *qp_steps_take(void)
{
    PyObject *rows = PyList_New(0);
    for (int i = 0; rows && i < table.count; i++) {
        if (!table.sums[i].changed) {
            continue;
        }
        PyObject *row = take(&table.sums[i]);
        if (!row || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    return rows;
}

void qp_steps_forget(void)
{
    for (int i = 0; i < table.count; i++) {
        qp_step_sums *sums = &table.sums[i];
        memset(&sums->durations, 0, sizeof sums->durations);
        sums->causes.known = 0;
        sums->causes.total_ticks = 0;
        sums->gc_ticks = 0;
        sums->changed = false;
    }
}
