#include "loops/steps.h"

#include <string.h>

#include "loops/stalls.h"
#include "loops/watchdog.h"
#include "memory/changes.h"
#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/allocation.h"
#include "runtime/assertion.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/index.h"
#include "sharing/shared_region.h"
#include "stacks/call_paths.h"
#include "stacks/code_lines.h"

/* A function that has run in a loop. */
typedef struct {
    const void *identity; /* NULL for the row of all other functions */
    PyObject *keeper;     /* owned: keeps the address in `identity` from being reused; or NULL */
    const qp_loop *loop;
} known_step;

static struct {
    known_step *known; /* indexed by row */
    qp_index index;    /* finds a row by loop and identity */
    uint64_t steps;    /* number of steps that have begun; the number of the last step */
} table;

static qp_step *free_steps; /* owned; never freed: steps may be in progress when recording stops */

static qp_step_row *function_sums(uint32_t row)
{
    return (qp_step_row *)qp_first_row(QP_STEP_ROWS) + row;
}

bool qp_steps_start(void)
{
    table.known = qp_allocate(QP_STEPS, sizeof *table.known);
    return table.known && qp_index_start(&table.index, 2 * QP_STEPS);
}

void qp_steps_stop(void)
{
    for (uint32_t i = 0; table.known && i < QP_STEPS; i++) {
        Py_CLEAR(table.known[i].keeper);
    }
    qp_free(table.known);
    qp_index_stop(&table.index);
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
    QP_ASSERT(step->running_loop->step != step);
    step->callback = NULL; /* the next step may belong to another loop */
    step->outer = free_steps;
    free_steps = step;
}

/* Returns the first line of the running function. */
static QP_COLD uint32_t first_line(PyObject *what)
{
    if (PyCode_Check(what)) {
        PyCodeObject *code = (PyCodeObject *)what;
        return qp_line_add(qp_text_from_str(code->co_qualname), qp_text_from_str(code->co_filename),
                           (uint32_t)code->co_firstlineno, qp_code_cached_owner(code));
    }
    const char *name = PyCFunction_Check(what) ? ((PyCFunctionObject *)what)->m_ml->ml_name
                                               : Py_TYPE(what)->tp_name;
    return qp_line_add(qp_text_find_or_add(name, strlen(name)), QP_TEXT_NONE, 0, QP_CODE_LIBRARY);
}

static uint64_t function_hash(const qp_loop *loop, const void *identity)
{
    return qp_hash_mix((uintptr_t)identity, (uintptr_t)loop);
}

/* Returns a new row for a function that has not run before; the row of all other functions if the
 * table is full; NULL if the table has no row. */
static QP_COLD qp_step_row *add_sums(const qp_loop *loop, const void *identity, PyObject *keeper,
                                     PyObject *what)
{
    if (!qp_row_count(QP_STEP_ROWS) && qp_rows_add(QP_STEP_ROWS, 1) == 0) {
        *function_sums(0) = (qp_step_row){.loop = qp_loop_number(loop), .line = QP_LINE_OTHER};
    }
    uint32_t line = first_line(what);
    uint32_t row = line == QP_LINE_OTHER ? UINT32_MAX : qp_rows_add(QP_STEP_ROWS, 1);
    if (row == UINT32_MAX) {
        return qp_row_count(QP_STEP_ROWS) ? function_sums(0) : NULL;
    }
    uint32_t slot = qp_index_begin(&table.index, function_hash(loop, identity));
    while (table.index.slots[slot]) {
        slot = qp_index_next(&table.index, slot);
    }
    table.known[row] = (known_step){identity, Py_XNewRef(keeper), loop};
    *function_sums(row) =
        (qp_step_row){.mark = qp_mark - 1, .loop = qp_loop_number(loop), .line = line};
    table.index.slots[slot] = row + 1;
    return function_sums(row);
}

static inline qp_step_row *find_sums(const qp_loop *loop, const void *identity)
{
    uint32_t slot = qp_index_begin(&table.index, function_hash(loop, identity));
    for (; table.index.slots[slot]; slot = qp_index_next(&table.index, slot)) {
        const known_step *known = &table.known[table.index.slots[slot] - 1];
        if (known->identity == identity && known->loop == loop) {
            return function_sums(table.index.slots[slot] - 1);
        }
    }
    return NULL;
}

static QP_COLD void start_awaited(void)
{
    if (qp_watchdog_awaited) {
        qp_watchdog_launch();
    }
    if (qp_share_awaited) {
        qp_region_share();
    }
}

static inline void begin_step(qp_step *step, qp_running_loop *running_loop, uint64_t start_ticks)
{
    if (qp_watchdog_awaited || qp_share_awaited) {
        start_awaited();
    }
    step->outer = running_loop->step;
    step->running_loop = running_loop;
    step->number = ++table.steps;
    step->gc_ticks_before = running_loop->gc_ticks;
    step->gil_ticks = 0;
    step->settled_ns = 0;
    step->event = 0;
    step->sites = 0;
    step->causes.known = 0;
    step->causes.total_ticks = 0;
    step->start_ticks = start_ticks;
    running_loop->step = step;
    atomic_store_explicit(&running_loop->step_number, step->number, memory_order_relaxed);
    atomic_store_explicit(&running_loop->started_ticks, start_ticks, memory_order_release);
    if (atomic_load_explicit(&qp_watchdog_sleeps, memory_order_relaxed)) {
        qp_watchdog_wake();
    }
}

void qp_step_begin(qp_step *step, qp_running_loop *running_loop, const void *identity,
                   PyObject *keeper, PyObject *what)
{
    qp_step_row *sums = find_sums(running_loop->loop, identity);
    step->sums = sums ? sums : add_sums(running_loop->loop, identity, keeper, what);
    /* Py_SIZE of a deque is its length. The callbacks in the deque wait for this step. */
    step->waiting = running_loop->ready ? Py_SIZE(running_loop->ready) : 0;
    begin_step(step, running_loop, qp_clock_ticks());
}

void qp_step_begin_unseen(qp_step *step, qp_running_loop *running_loop, uint64_t due_ticks)
{
    step->sums = NULL;
    step->waiting = 0;
    begin_step(step, running_loop, due_ticks);
}

/* Moves the maximum to max_before_ns, and starts a new maximum since the mark
 * (memory/changes.h). */
static void renew_longest(qp_step_row *sums)
{
    int64_t max_ns = sums->durations.max_ns;
    sums->max_before_ns = max_ns > sums->max_before_ns ? max_ns : sums->max_before_ns;
    sums->durations.max_ns = 0;
}

void qp_step_end(qp_step *step)
{
    uint64_t now = qp_clock_ticks();
    qp_running_loop *running_loop = step->running_loop;
    int64_t ns = qp_ticks_to_ns(qp_elapsed_ticks(step->start_ticks, now));
    running_loop->step = step->outer;
    atomic_store_explicit(&running_loop->started_ticks, step->outer ? step->outer->start_ticks : 0,
                          memory_order_release);
    if (step->outer) {
        atomic_store_explicit(&running_loop->step_number, step->outer->number,
                              memory_order_relaxed);
    }
    if (running_loop->recording != qp_recording) {
        return; /* the recording has ended */
    }
    qp_loop *loop = running_loop->loop;
    running_loop->last_ticks = now;
    qp_step_row *sums = step->sums;
    if (sums) {
        loop->busy_ticks += step->outer ? 0 : qp_elapsed_ticks(step->start_ticks, now);
        loop->steps++;
        loop->waiting += step->waiting;
        loop->waiting_max = step->waiting > loop->waiting_max ? step->waiting : loop->waiting_max;
        if (qp_row_before_change(QP_STEP_ROWS, sums)) {
            renew_longest(sums);
        }
        qp_distribution_add(&sums->durations, ns);
        sums->gc_ticks += running_loop->gc_ticks - step->gc_ticks_before;
        if (step->causes.total_ticks) {
            qp_step_queries_merge(&sums->causes, &step->causes);
        }
    }
    if (ns >= qp_stall_ns || step->settled_ns) {
        qp_stall_flush(step, ns, true);
    }
}

/* Returns whether a running loop's thread still has its state: a greenlet may wait in a step whose
 * thread has ended. */
static bool has_thread(const qp_running_loop *running_loop)
{
    PyThreadState *tstate = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    while (tstate && (tstate != running_loop->thread->tstate ||
                      (running_loop->kernel_id &&
                       tstate->native_thread_id != (unsigned long)running_loop->kernel_id))) {
        tstate = PyThreadState_Next(tstate);
    }
    return tstate != NULL;
}

void qp_step_sample(qp_running_loop *running_loop, uint64_t number, uint64_t asked_ticks,
                    int64_t gil_ns)
{
    qp_step *step =
        running_loop->in_use && running_loop->recording == qp_recording ? running_loop->step : NULL;
    if (!step || step->number != number ||
        qp_ticks_to_ns(qp_elapsed_ticks(step->start_ticks, asked_ticks)) < qp_stall_ns ||
        !has_thread(running_loop)) {
        return; /* the step has ended */
    }
    PyThreadState *tstate = running_loop->thread->tstate;
    uint32_t path = qp_call_path_sample(tstate, step);
    step->gil_ticks += (int64_t)qp_ns_to_ticks(gil_ns);
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
    qp_stalls_flush(); /* count the step now, because it may never end */
    qp_loops_flush();
}

void qp_steps_clear(void)
{
    for (uint32_t i = 0; i < qp_row_count(QP_STEP_ROWS); i++) {
        qp_step_row *sums = function_sums(i);
        *sums = (qp_step_row){.mark = qp_mark - 1, .loop = sums->loop, .line = sums->line};
    }
}
