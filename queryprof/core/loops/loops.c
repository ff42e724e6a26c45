#include "loops/loops.h"

#include <string.h>

#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/clock.h"
#include "runtime/cpu_time.h"

int64_t qp_stall_ns = 50 * 1000 * 1000;

static struct {
    qp_lane lanes[QP_LANES]; /* for ever: the watchdog looks at them whenever it likes */
    _Atomic int used;        /* the first so many */
} table;

static qp_loop *loops(void)
{
    return qp_rows(QP_LOOP_ROWS);
}

qp_lane *qp_lanes(int *count)
{
    *count = atomic_load(&table.used);
    return table.lanes;
}

/* The row of a kind of loop in threads of a name; the last one stands for all others when the table
 * is full. NULL: there is no room. */
static qp_loop *find_loop(PyObject *kind, uint16_t thread)
{
    qp_text name = qp_text_of_str(kind);
    uint32_t count = qp_row_count(QP_LOOP_ROWS);
    for (uint32_t i = 0; i < count; i++) {
        if (loops()[i].thread == thread && loops()[i].kind == name) {
            return &loops()[i];
        }
    }
    uint32_t added = count < QP_LOOPS ? qp_rows_add(QP_LOOP_ROWS, 1) : UINT32_MAX;
    if (added == UINT32_MAX) {
        return count ? &loops()[count - 1] : NULL;
    }
    bool is_last = added == QP_LOOPS - 1;
    loops()[added] = (qp_loop){.kind = is_last ? qp_text_of("(other)", 7) : name,
                               .thread = is_last ? 0 : thread};
    return &loops()[added];
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

/* Takes a lane out of those of its thread; with greenlets it need not be the innermost. */
static void unlink_lane(const qp_lane *lane)
{
    qp_lane **place = &lane->thread->lane;
    while (*place && *place != lane) {
        place = &(*place)->outer;
    }
    if (*place) {
        *place = lane->outer;
    }
}

void qp_lane_leave(qp_lane *lane)
{
    if (!lane) {
        return;
    }
    /* The same loop's, which a later recording has found running: no hook sees it stop. */
    qp_lane *innermost = lane->thread->lane;
    if (innermost && innermost != lane && innermost->is_adopted &&
        innermost->object == lane->object) {
        qp_lane_leave(innermost);
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (lane->recording == qp_recording) {
        settle(lane);
    }
    atomic_store(&lane->started_ticks, 0);
    unlink_lane(lane);
    lane->in_use = false;
    Py_CLEAR(lane->ready);
    Py_CLEAR(lane->timers);
    Py_CLEAR(lane->object);
    Py_CLEAR(lane->start_beats);
    Py_CLEAR(lane->end_beats);
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

bool qp_own_error_dropped(void)
{
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
    }
    return !PyErr_Occurred();
}

bool qp_lane_start_beats(qp_lane *lane, uint64_t busy_since_ticks)
{
    PyObject *start = lane->start_beats;
    if (!start || lane->last_ticks < lane->beat_due_ticks || lane != qp_lane_here()) {
        return true;
    }
    lane->start_beats = NULL;
    double due_s = (double)qp_clock_monotonic_of(lane->beat_due_ticks) * 1e-9;
    double busy_since_s = (double)qp_clock_monotonic_of(busy_since_ticks) * 1e-9;
    PyObject *end = PyObject_CallFunction(start, "Odd", lane->object, due_s, busy_since_s);
    Py_DECREF(start);
    Py_XSETREF(lane->end_beats, end);
    return end || qp_own_error_dropped();
}

void qp_loop_timer(qp_loop *loop, int64_t lag_ns)
{
    qp_distribution_add(&loop->timer, lag_ns);
}

void qp_loop_beat(qp_loop *loop, int64_t lag_ns)
{
    qp_distribution_add(&loop->beat, lag_ns);
}

uint32_t qp_loop_number(const qp_loop *loop)
{
    return (uint32_t)(loop - loops());
}

void qp_loops_settle(void)
{
    for (int i = 0; i < table.used; i++) {
        if (table.lanes[i].in_use && table.lanes[i].recording == qp_recording) {
            settle(&table.lanes[i]);
        }
    }
}

void qp_loops_forget(void)
{
    for (uint32_t i = 0; i < qp_row_count(QP_LOOP_ROWS); i++) {
        qp_loop *loop = &loops()[i];
        *loop = (qp_loop){.kind = loop->kind, .thread = loop->thread, .has_steps = loop->has_steps};
    }
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
}
