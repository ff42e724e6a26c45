#include "loops.h"

#include <string.h>

#include "allocation.h"
#include "clock.h"
#include "cpu_time.h"

int64_t qp_stall_ns = 50 * 1000 * 1000;

enum { BEATS_KEPT = 50 /* of an idle loop, until they are taken */ };

static struct {
    qp_loop *loops;          /* the last one stands for all others when the table is full */
    qp_lane lanes[QP_LANES]; /* for ever: the watchdog looks at them whenever it likes */
    _Atomic int used;        /* the first so many */
} table;

bool qp_loops_start(void)
{
    table.loops = qp_allocate(QP_LOOPS, sizeof *table.loops);
    return table.loops != NULL;
}

void qp_loops_stop(void)
{
    for (int i = 0; table.loops && i < QP_LOOPS; i++) {
        Py_CLEAR(table.loops[i].kind);
    }
    qp_release(table.loops);
    table.loops = NULL;
}

qp_lane *qp_lanes(int *count)
{
    *count = atomic_load(&table.used);
    return table.lanes;
}

static qp_loop *find_loop(PyObject *kind, uint16_t thread)
{
    for (int i = 0; i < QP_LOOPS; i++) {
        qp_loop *loop = &table.loops[i];
        bool is_last = i == QP_LOOPS - 1;
        if (!loop->kind) {
            loop->kind = is_last ? PyUnicode_FromString("(other)") : Py_NewRef(kind);
            loop->thread = is_last ? 0 : thread;
            return loop->kind ? loop : NULL;
        }
        if (is_last || (loop->thread == thread && PyUnicode_Compare(loop->kind, kind) == 0)) {
            return loop;
        }
    }
    return NULL;
}

/* The object's attribute if it is of this kind, as a new reference; else NULL. */
static PyObject *attribute(PyObject *object, const char *name, const char *type_name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value && strcmp(Py_TYPE(value)->tp_name, type_name) != 0) {
        Py_CLEAR(value);
    }
    PyErr_Clear(); /* a loop of another make */
    return value;
}

static void settle(qp_lane *lane)
{
    uint64_t now = lane->is_adopted ? lane->last_ticks : qp_clock_ticks();
    lane->loop->run_ticks += qp_clock_elapsed(lane->settled_ticks, now);
    lane->settled_ticks = now > lane->settled_ticks ? now : lane->settled_ticks;
}

void qp_lane_leave(qp_lane *lane)
{
    if (!lane) {
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (lane->recording == qp_recording) {
        settle(lane);
    }
    atomic_store(&lane->started_ticks, 0);
    lane->thread->lane = lane->outer;
    lane->in_use = false;
    Py_CLEAR(lane->ready);
    Py_CLEAR(lane->timers);
    Py_CLEAR(lane->object);
    PyErr_Restore(type, value, traceback);
}

qp_lane *qp_lane_enter(PyObject *kind, PyObject *object, bool has_steps)
{
    qp_thread *thread = qp_thread_here();
    if (thread && thread->lane && thread->lane->is_adopted) {
        qp_lane_leave(thread->lane);
    }
    int at = 0;
    while (at < QP_LANES && table.lanes[at].in_use) {
        at++;
    }
    qp_loop *loop = thread && at < QP_LANES ? find_loop(kind, thread->number) : NULL;
    if (!loop) {
        PyErr_Clear(); /* no memory: the loop goes unrecorded */
        return NULL;
    }
    qp_lane *lane = &table.lanes[at];
    memset(lane, 0, sizeof *lane);
    if (at >= atomic_load(&table.used)) {
        atomic_store(&table.used, at + 1);
    }
    lane->recording = qp_recording;
    lane->thread = thread;
    lane->loop = loop;
    lane->loop->has_steps = has_steps;
    lane->loop->changed = true;
    lane->loop->runs++;
    lane->object = Py_NewRef(object);
    if (has_steps) {
        lane->ready = attribute(object, "_ready", "collections.deque");
        lane->timers = attribute(object, "_scheduled", "list");
    }
    lane->kernel_id = qp_thread_kernel_id();
    lane->outer = thread->lane;
    lane->settled_ticks = qp_clock_ticks();
    lane->has_clock = true;
    lane->in_use = true;
    thread->lane = lane;
    return lane;
}

void qp_loop_timer(qp_loop *loop, int64_t lag_ns)
{
    qp_distribution_add(&loop->timer_lag, lag_ns);
    loop->changed = true;
}

void qp_loop_beat(qp_loop *loop, int64_t lag_ns)
{
    qp_distribution_add(&loop->beat_lag, lag_ns);
}

int qp_loop_number(const qp_loop *loop)
{
    return (int)(loop - table.loops);
}

void qp_loops_settle(void)
{
    for (int i = 0; i < table.used; i++) {
        if (table.lanes[i].in_use && table.lanes[i].recording == qp_recording) {
            settle(&table.lanes[i]);
        }
    }
}

/* An idle loop changes by its heartbeats and its run time alone. */
static bool has_anything(const qp_loop *loop)
{
    return loop->changed || loop->run_ticks || loop->beat_lag.count;
}

bool qp_loops_changed(bool everything)
{
    for (int i = 0; table.loops && i < QP_LOOPS; i++) {
        const qp_loop *loop = &table.loops[i];
        if (loop->changed || loop->beat_lag.count >= BEATS_KEPT ||
            (everything && has_anything(loop))) {
            return true;
        }
    }
    return false;
}

static PyObject *take(qp_loop *loop)
{
    PyObject *timers = qp_distribution_take(&loop->timer_lag);
    PyObject *beats = timers ? qp_distribution_take(&loop->beat_lag) : NULL;
    if (!beats) {
        Py_XDECREF(timers);
        return NULL;
    }
    PyObject *row = Py_BuildValue(
        "(iOiiLLLLLLNN)", qp_loop_number(loop), loop->kind, (int)loop->thread, (int)loop->has_steps,
        (long long)loop->runs, (long long)qp_clock_ns(loop->run_ticks),
        (long long)qp_clock_ns(loop->busy_ticks), (long long)loop->steps, (long long)loop->waiting,
        (long long)loop->waiting_max, timers, beats);
    if (row) {
        loop->runs = loop->run_ticks = loop->busy_ticks = loop->steps = 0;
        loop->waiting = loop->waiting_max = 0;
        loop->changed = false;
    }
    return row;
}

PyObject *qp_loops_take(void)
{
    PyObject *rows = PyList_New(0);
    for (int i = 0; rows && i < QP_LOOPS && table.loops[i].kind; i++) {
        if (!has_anything(&table.loops[i])) {
            continue;
        }
        PyObject *row = take(&table.loops[i]);
        if (!row || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    return rows;
}

void qp_loops_after_fork(void)
{
    for (int i = 0; i < table.used; i++) {
        qp_lane *lane = &table.lanes[i];
        lane->recording = 0;
        atomic_store(&lane->started_ticks, 0);
        if (lane->thread != qp_here.thread) {
            lane->in_use = false; /* what it owns may be in any state: left alone */
        }
    }
    for (int i = 0; table.loops && i < QP_LOOPS; i++) {
        qp_loop *loop = &table.loops[i];
        PyObject *kind = loop->kind;
        uint16_t thread = loop->thread;
        bool has_steps = loop->has_steps;
        *loop = (qp_loop){.kind = kind, .thread = thread, .has_steps = has_steps};
    }
}
