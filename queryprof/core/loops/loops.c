#include "loops/loops.h"

#include <string.h>

#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/clock.h"
#include "runtime/cpu_time.h"
#include "runtime/exception.h"

int64_t qp_stall_ns = 50 * 1000 * 1000;

static struct {
    qp_running_loop
        running_loops[QP_LANES]; /* never freed, because the watchdog reads them at any time */
    _Atomic int used;            /* number of registered loops */
} table;

static qp_loop *loop_rows(void)
{
    return qp_first_row(QP_LOOP_ROWS);
}

qp_running_loop *qp_running_loops(int *count)
{
    *count = atomic_load(&table.used);
    return table.running_loops;
}

/* Returns the row for a kind of loop in threads with a name. If the table is full, returns the last
 * row, which all other loops share. NULL if there is no room. */
static qp_loop *find_loop(PyObject *kind, uint16_t thread)
{
    qp_text name = qp_text_from_str(kind);
    uint32_t count = qp_row_count(QP_LOOP_ROWS);
    for (uint32_t i = 0; i < count; i++) {
        if (loop_rows()[i].thread == thread && loop_rows()[i].kind == name) {
            return &loop_rows()[i];
        }
    }
    uint32_t added = count < QP_LOOPS ? qp_rows_add(QP_LOOP_ROWS, 1) : UINT32_MAX;
    if (added == UINT32_MAX) {
        return count ? &loop_rows()[count - 1] : NULL;
    }
    bool is_last = added == QP_LOOPS - 1;
    loop_rows()[added] = (qp_loop){.kind = is_last ? qp_text_find_or_add("(other)", 7) : name,
                                   .thread = is_last ? 0 : thread};
    return &loop_rows()[added];
}

/* Returns an attribute of an object if its type has this name (a new reference), otherwise NULL. */
static PyObject *attribute_if_type(PyObject *object, const char *name, const char *type_name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value && strcmp(Py_TYPE(value)->tp_name, type_name) != 0) {
        Py_CLEAR(value);
    }
    qp_exception_clear(); /* a loop of another type */
    return value;
}

static void add_run_time(qp_running_loop *running_loop)
{
    uint64_t now = running_loop->is_adopted ? running_loop->last_ticks : qp_clock_ticks();
    running_loop->loop->run_ticks += qp_elapsed_ticks(running_loop->settled_ticks, now);
    running_loop->settled_ticks =
        now > running_loop->settled_ticks ? now : running_loop->settled_ticks;
}

/* Removes a running loop from its thread's list. With greenlets, the loop need not be the
 * innermost. */
static void unlink_loop(const qp_running_loop *running_loop)
{
    qp_running_loop **place = &running_loop->thread->running_loop;
    while (*place && *place != running_loop) {
        place = &(*place)->outer;
    }
    if (*place) {
        *place = running_loop->outer;
    }
}

void qp_running_loop_leave(qp_running_loop *running_loop)
{
    if (!running_loop) {
        return;
    }
    /* A later recording may have found the same loop running and made another record. No hook
     * reports that loop's stop, so end its record here. */
    qp_running_loop *innermost = running_loop->thread->running_loop;
    if (innermost && innermost != running_loop && innermost->is_adopted &&
        innermost->object == running_loop->object) {
        qp_running_loop_leave(innermost);
    }
    qp_exception exception = qp_exception_take();
    if (running_loop->recording == qp_recording) {
        add_run_time(running_loop);
    }
    atomic_store(&running_loop->started_ticks, 0);
    unlink_loop(running_loop);
    running_loop->in_use = false;
    Py_CLEAR(running_loop->ready);
    Py_CLEAR(running_loop->timers);
    Py_CLEAR(running_loop->object);
    Py_CLEAR(running_loop->start_beats);
    Py_CLEAR(running_loop->end_beats);
    qp_exception_put_back(&exception);
}

qp_running_loop *qp_running_loop_enter(PyObject *kind, PyObject *object, bool has_steps)
{
    qp_thread *thread = qp_thread_here();
    if (thread && thread->running_loop && thread->running_loop->is_adopted) {
        qp_running_loop_leave(thread->running_loop);
    }
    int at = 0;
    while (at < QP_LANES && table.running_loops[at].in_use) {
        at++;
    }
    qp_loop *loop = thread && at < QP_LANES ? find_loop(kind, thread->number) : NULL;
    if (!loop) {
        qp_exception_clear(); /* no memory: the loop is not recorded */
        return NULL;
    }
    qp_running_loop *running_loop = &table.running_loops[at];
    memset(running_loop, 0, sizeof *running_loop);
    if (at >= atomic_load(&table.used)) {
        atomic_store(&table.used, at + 1);
    }
    running_loop->recording = qp_recording;
    running_loop->thread = thread;
    running_loop->loop = loop;
    running_loop->loop->has_steps = has_steps;
    running_loop->loop->runs++;
    running_loop->object = Py_NewRef(object);
    if (has_steps) {
        running_loop->ready = attribute_if_type(object, "_ready", "collections.deque");
        running_loop->timers = attribute_if_type(object, "_scheduled", "list");
    }
    running_loop->kernel_id = qp_thread_kernel_id();
    running_loop->outer = thread->running_loop;
    running_loop->settled_ticks = qp_clock_ticks();
    running_loop->has_clock = true;
    running_loop->in_use = true;
    thread->running_loop = running_loop;
    return running_loop;
}

bool qp_own_exception_clear(void)
{
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) {
        qp_exception_clear();
    }
    return !PyErr_Occurred();
}

bool qp_running_loop_start_heartbeat(qp_running_loop *running_loop, uint64_t busy_since_ticks)
{
    PyObject *start = running_loop->start_beats;
    if (!start || running_loop->last_ticks < running_loop->beat_due_ticks ||
        running_loop != qp_running_loop_here()) {
        return true;
    }
    running_loop->start_beats = NULL;
    double due_s = (double)qp_ticks_to_monotonic_ns(running_loop->beat_due_ticks) * 1e-9;
    double busy_since_s = (double)qp_ticks_to_monotonic_ns(busy_since_ticks) * 1e-9;
    PyObject *end = PyObject_CallFunction(start, "Odd", running_loop->object, due_s, busy_since_s);
    Py_DECREF(start);
    Py_XSETREF(running_loop->end_beats, end);
    return end || qp_own_exception_clear();
}

void qp_loop_add_timer_lag(qp_loop *loop, int64_t lag_ns)
{
    qp_distribution_add(&loop->timer, lag_ns);
}

void qp_loop_add_heartbeat_lag(qp_loop *loop, int64_t lag_ns)
{
    qp_distribution_add(&loop->beat, lag_ns);
}

uint32_t qp_loop_number(const qp_loop *loop)
{
    return (uint32_t)(loop - loop_rows());
}

void qp_loops_flush(void)
{
    for (int i = 0; i < table.used; i++) {
        if (table.running_loops[i].in_use && table.running_loops[i].recording == qp_recording) {
            add_run_time(&table.running_loops[i]);
        }
    }
}

void qp_loops_clear(void)
{
    for (uint32_t i = 0; i < qp_row_count(QP_LOOP_ROWS); i++) {
        qp_loop *loop = &loop_rows()[i];
        *loop = (qp_loop){.kind = loop->kind, .thread = loop->thread, .has_steps = loop->has_steps};
    }
}

void qp_loops_after_fork(void)
{
    for (int i = 0; i < table.used; i++) {
        qp_running_loop *running_loop = &table.running_loops[i];
        running_loop->recording = 0;
        atomic_store(&running_loop->started_ticks, 0);
        if (running_loop->thread != qp_here.thread) {
            running_loop->in_use = false; /* do not touch the loop's objects, which may be in any
                                           * state */
        }
    }
}
