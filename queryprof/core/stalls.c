#include "stalls.h"

#include <string.h>

#include "allocation.h"
#include "callpath.h"
#include "clock.h"
#include "cpu_time.h"

enum { STALLS = 128 };

/* Sums since they were last taken, by (what ran, where it was seen). */
typedef struct {
    bool in_use;
    const qp_loop *loop;
    PyObject *described; /* owned: (function, file, line, kind) of what ran, or None */
    uint32_t path;
    uint32_t stack;
    int64_t count;
    int64_t total_ns;
    int64_t max_ns;
    int64_t gc_ns;
    int64_t gil_ns;
    int64_t cpu_ns;    /* that the thread ran or was ready to run ... */
    int64_t cpu_of_ns; /* ... in so much of the time */
    int64_t delayed;   /* callbacks and timers that had to wait ... */
    int64_t delay_ns;  /* ... and for how long, added up */
    int64_t samples;
    qp_causes causes;
} stall;

static struct {
    qp_timer_is_due *is_due; /* NULL: timers cannot be looked into */
    stall *stalls;           /* the last one stands for all others when the table is full */
} table;

bool qp_stalls_start(void)
{
    table.stalls = qp_allocate(STALLS, sizeof *table.stalls);
    return table.stalls != NULL;
}

void qp_stalls_forget(void)
{
    for (int i = 0; table.stalls && i < STALLS && table.stalls[i].in_use; i++) {
        Py_CLEAR(table.stalls[i].described);
        memset(&table.stalls[i], 0, sizeof table.stalls[i]);
    }
}

void qp_stalls_stop(void)
{
    qp_stalls_forget();
    qp_release(table.stalls);
    table.stalls = NULL;
}

void qp_stalls_know_timers(qp_timer_is_due *is_due)
{
    table.is_due = is_due;
}

static const qp_step_site *most_seen(const qp_step *step)
{
    const qp_step_site *most = NULL;
    for (int i = 0; i < step->sites; i++) {
        if (!most || step->site[i].hits > most->hits) {
            most = &step->site[i];
        }
    }
    return most;
}

/* Where a step was: where it was seen most; else where it asked the database for longest. */
static uint32_t path_of(const qp_step *step)
{
    const qp_step_site *most = most_seen(step);
    const qp_cause *longest = NULL;
    for (int i = 0; i < step->causes.known; i++) {
        if (!longest || step->causes.cause[i].ticks > longest->ticks) {
            longest = &step->causes.cause[i];
        }
    }
    return most ? most->path : longest ? longest->path : QP_PATH_NONE;
}

static stall *find_stall(const qp_step *step, uint32_t path)
{
    PyObject *described = step->sums ? step->sums->described : Py_None;
    for (int i = 0; i < STALLS; i++) {
        stall *known = &table.stalls[i];
        bool is_last = i == STALLS - 1;
        if (!known->in_use) {
            *known = (stall){.in_use = true,
                             .loop = step->lane->loop,
                             .described = Py_NewRef(is_last ? Py_None : described),
                             .path = is_last ? QP_PATH_OTHER : path};
            return known;
        }
        if (is_last || (known->loop == step->lane->loop && known->path == path &&
                        known->described == described)) {
            return known;
        }
    }
    return NULL;
}

static void add_cpu(stall *to, const qp_step *step)
{
    const qp_lane *lane = step->lane;
    int64_t cpu_ns = qp_cpu_wanted_ns(lane->kernel_id);
    if (cpu_ns >= 0 && atomic_load(&lane->seen_number) == step->number) {
        to->cpu_ns += cpu_ns - lane->seen_cpu_ns;
        to->cpu_of_ns += qp_clock_ns(qp_clock_elapsed(lane->seen_ticks, qp_clock_ticks()));
    }
}

/* The timers that were due while the step ran waited from then on. */
static void add_timers(stall *to, const qp_step *step, int64_t ns)
{
    PyObject *timers = step->lane->timers;
    if (!timers || !step->lane->has_clock || !table.is_due) {
        return;
    }
    double began_s = (double)qp_clock_monotonic_of(step->start_ticks) * 1e-9;
    double now_s = began_s + (double)ns * 1e-9;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(timers); i++) {
        double due_s;
        if (table.is_due(PyList_GET_ITEM(timers, i), &due_s) && due_s < now_s) {
            to->delayed++;
            to->delay_ns += (int64_t)((now_s - (due_s > began_s ? due_s : began_s)) * 1e9);
        }
    }
}

static void add_end(stall *to, const qp_step *step, int64_t ns)
{
    const qp_step_site *most = most_seen(step);
    to->max_ns = ns > to->max_ns ? ns : to->max_ns;
    if (most && ns == to->max_ns) {
        to->stack = most->stack;
    }
    to->gc_ns += qp_clock_ns(step->lane->gc_ticks - step->gc_ticks_before);
    to->delayed += step->waiting;
    to->delay_ns += step->waiting * ns;
    for (int i = 0; i < step->sites; i++) {
        to->samples += step->site[i].hits;
    }
    to->gil_ns += qp_clock_ns(step->gil_ticks);
    qp_causes_join(&to->causes, &step->causes);
    add_cpu(to, step);
    add_timers(to, step, ns);
}

void qp_stall_settle(qp_step *step, int64_t ns, bool ended)
{
    bool is_new = step->settled_ns == 0;
    uint32_t path = is_new ? path_of(step) : step->settled_path;
    stall *to = find_stall(step, path);
    step->lane->loop->changed = true;
    to->count += is_new;
    to->total_ns += ns - step->settled_ns;
    step->settled_ns = ns;
    step->settled_path = path;
    if (ended) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        add_end(to, step, ns);
        PyErr_Restore(type, value, traceback);
    } else {
        const qp_step_site *most = most_seen(step);
        to->max_ns = ns > to->max_ns ? ns : to->max_ns;
        if (most) {
            to->stack = most->stack;
        }
    }
}

void qp_stalls_settle(void)
{
    uint64_t now = qp_clock_ticks();
    int count;
    qp_lane *lanes = qp_lanes(&count);
    for (int i = 0; i < count; i++) {
        qp_lane *lane = &lanes[i];
        qp_step *step = lane->in_use && lane->recording == qp_recording ? lane->step : NULL;
        int64_t ns = step ? qp_clock_ns(qp_clock_elapsed(step->start_ticks, now)) : 0;
        if (ns >= qp_stall_ns && step->sites) {
            qp_stall_settle(step, ns, false);
        }
    }
}

static PyObject *take(stall *from)
{
    int64_t database_ns = qp_clock_ns(from->causes.total_ticks);
    PyObject *causes = qp_causes_take(&from->causes);
    if (!causes) {
        return NULL;
    }
    return Py_BuildValue("(iOIILLLLLLLLLLLN)", qp_loop_number(from->loop), from->described,
                         (unsigned)from->path, (unsigned)from->stack, (long long)from->count,
                         (long long)from->total_ns, (long long)from->max_ns, (long long)database_ns,
                         (long long)from->gc_ns, (long long)from->gil_ns, (long long)from->cpu_ns,
                         (long long)from->cpu_of_ns, (long long)from->delayed,
                         (long long)from->delay_ns, (long long)from->samples, causes);
}

PyObject *qp_stalls_take(void)
{
    PyObject *rows = PyList_New(0);
    for (int i = 0; rows && i < STALLS && table.stalls[i].in_use; i++) {
        PyObject *row = take(&table.stalls[i]);
        if (!row || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    if (rows) {
        qp_stalls_forget();
    }
    return rows;
}
