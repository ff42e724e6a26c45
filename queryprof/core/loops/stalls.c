#include "loops/stalls.h"

#include <string.h>

#include "loops/stall_events.h"
#include "memory/region.h"
#include "runtime/clock.h"
#include "runtime/cpu_time.h"
#include "runtime/exception.h"
#include "stacks/call_paths.h"

static const uint32_t UNSEEN = UINT32_MAX; /* used instead of a line */

static qp_timer_reader *timer_is_due;       /* NULL if timers cannot be read */
static qp_callback_finder *is_own_callback; /* NULL if callbacks cannot be read */

void qp_stalls_clear(void)
{
    qp_rows_clear(QP_STALL_ROWS);
    qp_rows_clear(QP_STALL_EVENT_ROWS);
}

void qp_stalls_set_readers(qp_timer_reader *is_due, qp_callback_finder *is_own)
{
    timer_is_due = is_due;
    is_own_callback = is_own;
}

static const qp_step_site *most_seen_site(const qp_step *step)
{
    const qp_step_site *most = NULL;
    for (int i = 0; i < step->sites; i++) {
        if (!most || step->site[i].hits > most->hits) {
            most = &step->site[i];
        }
    }
    return most;
}

/* Returns the call path of a step: the path that the watchdog saw most often, or else the path with
 * the longest database time. */
static uint32_t step_path(const qp_step *step)
{
    const qp_step_site *most = most_seen_site(step);
    const qp_step_query *longest = NULL;
    for (int i = 0; i < step->causes.known; i++) {
        if (!longest || step->causes.cause[i].ticks > longest->ticks) {
            longest = &step->causes.cause[i];
        }
    }
    return most ? most->path : longest ? longest->path : QP_PATH_NONE;
}

/* Returns the row for a step's function and call path. If the table is full, returns the last row,
 * which all other stalls share. NULL if there is no room. */
static qp_stall_row *find_stall(const qp_step *step, uint32_t path)
{
    qp_stall_row *rows = qp_first_row(QP_STALL_ROWS);
    uint32_t count = qp_row_count(QP_STALL_ROWS);
    uint32_t line = step->sums ? step->sums->line : UNSEEN;
    uint32_t loop = qp_loop_number(step->running_loop->loop);
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].loop == loop && rows[i].path == path && rows[i].line == line) {
            return &rows[i];
        }
    }
    uint32_t added = count < QP_STALLS ? qp_rows_add(QP_STALL_ROWS, 1) : UINT32_MAX;
    if (added == UINT32_MAX) {
        return count ? &rows[count - 1] : NULL;
    }
    bool is_last = added == QP_STALLS - 1;
    rows[added] = (qp_stall_row){
        .loop = loop, .line = is_last ? UNSEEN : line, .path = is_last ? QP_PATH_OTHER : path};
    return &rows[added];
}

/* Adds the CPU time between the watchdog's first sample and the end of the step, if that is a tenth
 * of the step or more. On a busy machine, the watchdog may take the sample when a sleep is over and
 * the thread waits for a CPU. If steps cannot be seen, the watchdog may have taken the sample
 * before this step began. Then the step's CPU time is between two bounds. The CPU time counts as
 * known if both bounds are below, or both above, half of the step. */
static void add_cpu(qp_stall_row *to, const qp_step *step, int64_t ns)
{
    enum { PARTS = 10 }; /* the watchdog must have seen a tenth of the step */
    const qp_running_loop *running_loop = step->running_loop;
    int64_t now_ns = qp_cpu_ns(running_loop->kernel_id);
    int64_t seen_ns = qp_ticks_to_ns(qp_elapsed_ticks(running_loop->seen_ticks, qp_clock_ticks()));
    if (now_ns < 0 || atomic_load(&running_loop->seen_number) != step->number ||
        seen_ns < ns / PARTS) {
        return;
    }
    int64_t queued_ns = atomic_load(&running_loop->queued_ns);
    int64_t cpu_ns = now_ns - running_loop->seen_cpu_ns + (queued_ns > 0 ? queued_ns : 0);
    if (queued_ns < 0 && cpu_ns <= seen_ns / 2) {
        return; /* it is unknown whether the thread waited, or was ready while other threads had the
                 * CPU */
    }
    if (seen_ns > ns) {
        int64_t least_ns = cpu_ns - (seen_ns - ns), most_ns = cpu_ns < ns ? cpu_ns : ns;
        bool is_known = most_ns <= ns / 2 || least_ns > ns / 2;
        cpu_ns = most_ns <= ns / 2 ? most_ns : least_ns;
        seen_ns = is_known ? ns : 0;
    }
    if (seen_ns) {
        to->cpu_ns += cpu_ns;
        to->cpu_of_ns += seen_ns;
    }
}

/* Adds the timers that became due during the step, and waited until its end. */
static void add_timers(qp_stall_row *to, const qp_step *step, int64_t ns)
{
    PyObject *timers = step->running_loop->timers;
    if (!timers || !step->running_loop->has_clock || !timer_is_due) {
        return;
    }
    double began_s = (double)qp_ticks_to_monotonic_ns(step->start_ticks) * 1e-9;
    double now_s = began_s + (double)ns * 1e-9;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(timers); i++) {
        double due_s;
        if (timer_is_due(PyList_GET_ITEM(timers, i), &due_s) && due_s < now_s) {
            to->delayed++;
            to->delay_ns += (int64_t)((now_s - (due_s > began_s ? due_s : began_s)) * 1e9);
        }
    }
}

/* Returns how many of the callbacks that were ready when the step began are queryprof's own. They
 * are still the first ones, because the loop has run no other callback since then. */
static Py_ssize_t own_callbacks(const qp_step *step)
{
    PyObject *ready = step->running_loop->ready;
    PyObject *items = step->waiting && ready && is_own_callback ? PyObject_GetIter(ready) : NULL;
    PyObject *item = NULL;
    Py_ssize_t own = 0;
    for (Py_ssize_t i = 0; items && i < step->waiting && (item = PyIter_Next(items)); i++) {
        own += is_own_callback(item);
        Py_DECREF(item); /* the deque keeps it */
    }
    Py_XDECREF(items);
    qp_exception_clear();
    return own;
}

static void add_ended_step(qp_stall_row *to, const qp_step *step, int64_t ns)
{
    const qp_step_site *most = most_seen_site(step);
    to->max_ns = ns > to->max_ns ? ns : to->max_ns;
    if (most && ns == to->max_ns) {
        to->stack = most->stack;
    }
    to->gc_ns += qp_ticks_to_ns(step->running_loop->gc_ticks - step->gc_ticks_before);
    Py_ssize_t waiting = step->waiting - own_callbacks(step);
    to->delayed += waiting;
    to->delay_ns += waiting * ns;
    for (int i = 0; i < step->sites; i++) {
        to->samples += step->site[i].hits;
    }
    to->gil_ns += qp_ticks_to_ns(step->gil_ticks);
    qp_step_queries_merge(&to->causes, &step->causes);
    add_cpu(to, step, ns);
    add_timers(to, step, ns);
}

void qp_stall_flush(qp_step *step, int64_t ns, bool ended)
{
    bool is_new = step->settled_ns == 0;
    uint32_t path = is_new ? step_path(step) : step->settled_path;
    qp_stall_row *to = find_stall(step, path);
    if (!to) {
        return;
    }
    to->count += is_new;
    to->total_ns += ns - step->settled_ns;
    step->settled_ns = ns;
    step->settled_path = path;
    const qp_step_site *seen = most_seen_site(step);
    qp_stall_event_keep(step, to, seen ? seen->stack : 0, ns);
    if (ended) {
        qp_exception exception = qp_exception_take();
        add_ended_step(to, step, ns);
        qp_exception_put_back(&exception);
    } else {
        to->max_ns = ns > to->max_ns ? ns : to->max_ns;
        if (seen) {
            to->stack = seen->stack;
        }
    }
}

void qp_stalls_flush(void)
{
    uint64_t now = qp_clock_ticks();
    int count;
    qp_running_loop *running_loops = qp_running_loops(&count);
    for (int i = 0; i < count; i++) {
        qp_running_loop *running_loop = &running_loops[i];
        qp_step *step = running_loop->in_use && running_loop->recording == qp_recording
                            ? running_loop->step
                            : NULL;
        int64_t ns = step ? qp_ticks_to_ns(qp_elapsed_ticks(step->start_ticks, now)) : 0;
        if (ns >= qp_stall_ns && step->sites) {
            qp_stall_flush(step, ns, false);
        }
    }
}
