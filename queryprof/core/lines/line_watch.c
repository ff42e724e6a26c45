#include "lines/line_watch.h"

qp_line_watch qp_watched_line;

#if PY_VERSION_HEX >= 0x030C0000

#include <limits.h>

#include "lines/code_events.h"
#include "lines/event_cost.h"
#include "lines/line_passes.h"
#include "memory/execution_row.h"
#include "memory/region.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/cpu_time.h"
#include "runtime/exception.h"
#include "runtime/recording.h"
#include "stacks/frames.h"
#include "stacks/greenlets.h"
#include "stacks/stacks.h"
#include "stacks/submitter.h"

enum {
    EVENTS = 4000, /* maximum number of events per watch */
    LOOP = 3,      /* times as many in a loop over rows: Django fetches 2,000 rows at once */
    FRUITLESS = 4, /* a watch ends after this many passes without an execution */
    FOREIGN = 3,   /* foreign calls do not count if they take more than 1/FOREIGN of a pass; a
                    * shorter call may build the statement, and the fix saves that time */
    OFTEN = 3,     /* a library's usual ratio of time before an execution to time after it */
    BEFORE = 16,   /* maximum ratio (SQLAlchemy, Django: 1.1 to 8.2); more is a foreign call's */
    UNITS = 20000  /* maximum size of watched code in units: adding events takes time */
};

static PyObject *on_line(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_jump(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_call(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_start(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_resume(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_yield(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_return(PyObject *module, PyObject *const *args, Py_ssize_t count);

#define CALLBACK(function) {#function, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL}

static qp_code_event events[] = {
    {"LINE", true, CALLBACK(on_line)},        {"JUMP", true, CALLBACK(on_jump)},
    {"CALL", true, CALLBACK(on_call)},        {"PY_RESUME", true, CALLBACK(on_resume)},
    {"PY_YIELD", true, CALLBACK(on_yield)},   {"PY_START", true, CALLBACK(on_start)},
    {"PY_RETURN", true, CALLBACK(on_return)},
};

enum {
    EVENT_KINDS = sizeof events / sizeof *events,
    FUNCTION_EVENTS = 5 /* the first of the events for calls of a function */
};

static bool is_in_line(int line)
{
    return qp_watched_line.first_line <= line && line <= qp_watched_line.last_line;
}

/* Adds the time since the frame entered the line or made its last call. */
static void add_elapsed(uint64_t now)
{
    uint64_t from = qp_watched_line.from_ticks, executed = qp_watched_line.executed_ticks;
    int64_t ticks = (int64_t)qp_elapsed_ticks(from, now), before = ticks;
    if (executed) { /* after the call, or in it */
        int64_t after = (int64_t)qp_elapsed_ticks(executed, now);
        before = ticks - after > BEFORE * after ? ticks - OFTEN * after - after : 0;
    }
    qp_watched_line.ticks += ticks;
    qp_watched_line.foreign_ticks += qp_watched_line.is_foreign ? before : 0;
    qp_watched_line.from_ticks = now;
    qp_watched_line.executed_ticks = 0;
    qp_watched_line.is_foreign = false;
}

static void leave_line(void)
{
    if (qp_watched_line.is_inside) {
        add_elapsed(qp_clock_ticks());
        qp_watched_line.is_inside = false;
    }
}

static void enter_line(void)
{
    qp_watched_line.is_inside = true;
    qp_watched_line.is_foreign = false;
    qp_watched_line.executed_ticks = 0;
    qp_watched_line.since_pass = qp_watched_line.elsewhere = 0;
    qp_watched_line.from_ticks = qp_clock_ticks();
}

/* Returns the ticks of the pass in progress that count. */
static int64_t counted_ticks(void)
{
    bool is_much = FOREIGN * qp_watched_line.foreign_ticks > qp_watched_line.ticks;
    return qp_watched_line.ticks - (is_much ? qp_watched_line.foreign_ticks : 0);
}

/* Notes the rows that were fetched so far from the execution from which the thread fetched last. */
static void note_fetched_rows(void)
{
    const qp_thread *thread = qp_thread_here();
    const qp_execution *e = thread ? thread->serving : NULL;
    if (e) {
        int64_t settled = e->stage == QP_STAGE_SETTLED ? e->fetched : 0;
        int64_t pending = e->pending.calls ? e->pending.rows : 0;
        qp_line_passes_set_rows(&e->meter.key, settled + pending);
    }
}

/* Ends the pass in progress, and the watch if enough passes have ended. */
static void end_pass(void)
{
    note_fetched_rows();
    int64_t ticks = counted_ticks();
    qp_watched_line.ticks = qp_watched_line.foreign_ticks = 0;
    bool is_partial = qp_watched_line.is_partial;
    qp_watched_line.is_partial = false;
    qp_watched_line.serial++;
    qp_watched_line.passes++;
    if (qp_watched_line.is_mixed) {
        qp_watched_line.is_mixed = false;
        qp_line_passes_forget_current();
    } else if (qp_line_passes_end_current(qp_ticks_to_ns(ticks), is_partial) ||
               (!qp_watched_line.has_executed && qp_watched_line.passes >= FRUITLESS)) {
        qp_line_watch_stop();
    }
}

/* Forgets the pass in progress, for example because an exception has ended its frame. */
static void forget_pass(void)
{
    qp_watched_line.frame = NULL;
    qp_watched_line.is_inside = qp_watched_line.is_suspended = qp_watched_line.is_partial =
        qp_watched_line.is_mixed = qp_watched_line.is_foreign = false;
    qp_watched_line.ticks = qp_watched_line.foreign_ticks = 0;
    qp_watched_line.serial++;
    qp_line_passes_forget_current();
    qp_line_passes_begin_call();
}

/* Returns whether the frame of the pass in progress is running. In a recursion, the outer pass
 * counts. */
static bool is_recursion(void)
{
    return qp_watched_line.frame &&
           qp_frame_is_running(qp_watched_line.tstate, qp_watched_line.frame);
}

/* Begins the first pass of a frame, in the running thread. */
static void begin_pass(const void *frame)
{
    forget_pass();
    qp_watched_line.tstate = PyThreadState_Get();
    qp_watched_line.frame = frame;
    enter_line();
}

/* Returns the identity of the frame that reports an event; NULL if another thread's pass is in
 * progress, or if the code object is no longer watched. */
static const void *reporting_frame(PyObject *const *args, Py_ssize_t count)
{
    if (!qp_watched_line.code || qp_watched_line.is_changing || count < 2 ||
        args[0] != (PyObject *)qp_watched_line.code) {
        return NULL;
    }
    int most = qp_line_passes_are_joined() ? LOOP * EVENTS : EVENTS;
    if (++qp_watched_line.events > most || qp_event_cost_is_high(qp_watched_line.events)) {
        forget_pass(); /* there will be no further events, so the end of the pass is unknown */
        qp_line_watch_stop();
        return NULL;
    }
    PyThreadState *tstate = PyThreadState_Get();
    bool is_free = !qp_watched_line.frame || tstate == qp_watched_line.tstate;
    return is_free ? qp_frame_running(tstate) : NULL;
}

static PyObject *on_line(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    const void *frame = reporting_frame(args, count);
    if (!frame) {
        Py_RETURN_NONE;
    }
    int line = (int)PyLong_AsLong(args[1]);
    if (frame != qp_watched_line.frame) {
        if (is_in_line(line) && !is_recursion()) {
            begin_pass(frame);
        }
        Py_RETURN_NONE;
    }
    bool was_inside = qp_watched_line.is_inside;
    leave_line();
    qp_watched_line.is_suspended = false;
    bool begins_again = line == qp_watched_line.first_line && qp_line_passes_has_executed();
    if (was_inside && (!is_in_line(line) || begins_again)) {
        end_pass();
    }
    if (qp_watched_line.code && is_in_line(line)) {
        enter_line();
    }
    Py_RETURN_NONE;
}

/* A comprehension starts its line only once, so a backward jump in the line ends a pass. */
static PyObject *on_jump(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    const void *frame = reporting_frame(args, count);
    bool is_inside = frame && frame == qp_watched_line.frame && qp_watched_line.is_inside;
    bool is_backward = count > 2 && PyLong_AsLong(args[2]) < PyLong_AsLong(args[1]);
    bool has_row = qp_line_passes_has_executed() || qp_line_passes_are_joined();
    if (is_inside && is_backward && has_row) {
        leave_line();
        end_pass();
        if (qp_watched_line.code) {
            enter_line();
        }
    } else if (is_inside) {
        add_elapsed(qp_clock_ticks()); /* the last call does not make the next row */
    }
    Py_RETURN_NONE;
}

/* The line makes a call: the previous call has ended. So each part of the time has one call. */
static PyObject *on_call(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    const void *frame = reporting_frame(args, count);
    if (frame && frame == qp_watched_line.frame && qp_watched_line.is_inside && count > 3) {
        add_elapsed(qp_clock_ticks());
        qp_watched_line.is_foreign =
            qp_call_is_foreign(&qp_watched_line.libraries, args[2], args[3]);
    }
    Py_RETURN_NONE;
}

static PyObject *on_start(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    const void *frame = reporting_frame(args, count);
    if (frame && frame == qp_watched_line.frame) {
        forget_pass(); /* another call of the function, whose frame is at the same address */
    }
    if (frame && qp_watched_line.is_function && !is_recursion()) {
        begin_pass(frame);
    }
    Py_RETURN_NONE;
}

static PyObject *on_resume(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    const void *frame = reporting_frame(args, count);
    if (frame && frame == qp_watched_line.frame && qp_watched_line.is_suspended) {
        qp_watched_line.is_suspended = false;
        enter_line();
        qp_watched_line.is_foreign = qp_watched_line.was_foreign;
    }
    Py_RETURN_NONE;
}

static PyObject *on_yield(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    const void *frame = reporting_frame(args, count);
    if (frame && frame == qp_watched_line.frame && qp_watched_line.is_inside) {
        qp_watched_line.was_foreign = qp_watched_line.is_foreign && !qp_watched_line.executed_ticks;
        leave_line();
        qp_watched_line.is_suspended = true;
    }
    Py_RETURN_NONE;
}

static PyObject *on_return(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    const void *frame = reporting_frame(args, count);
    if (frame && frame == qp_watched_line.frame) {
        leave_line();
        end_pass();
        qp_watched_line.frame = NULL;
        qp_line_passes_begin_call();
    }
    Py_RETURN_NONE;
}

/* Returns the innermost line of a path. */
static const qp_line_row *innermost_line(uint32_t path)
{
    return (const qp_line_row *)qp_first_row(QP_LINE_ROWS) + qp_stack_innermost_line(path);
}

bool qp_line_watch_begin(PyCodeObject *code, int first_line, int last_line, uint32_t path,
                         const void *frame, const qp_libraries *libraries, const qp_thread *thread,
                         uint64_t from_ticks)
{
    if (qp_watched_line.is_changing || path <= QP_PATH_OTHER || Py_SIZE(code) > UNITS) {
        return true; /* the line is unknown, or its events would cost too much */
    }
    bool is_function = !first_line;
    qp_watched_line = (qp_line_watch){
        .code = (PyCodeObject *)Py_NewRef((PyObject *)code),
        .tstate = thread->tstate,
        .first_line = first_line,
        .last_line = is_function ? INT_MAX : last_line,
        .function = innermost_line(path)->function,
        .file = innermost_line(path)->file,
        .is_function = is_function,
        .serial = qp_watched_line.serial + 1,
        .frame = frame,
        .is_inside = frame != NULL,
        .is_partial = frame != NULL,
        .from_ticks = from_ticks,
        .libraries = *libraries,
        .spent_ns = qp_watched_line.spent_ns,
        .is_changing = true,
    };
    qp_line_passes_clear();
    qp_event_cost_measure(code, first_line);
    for (int i = 0; i < EVENT_KINDS; i++) {
        events[i].is_wanted = !is_function || i >= FUNCTION_EVENTS;
    }
    uint32_t recording = qp_recording;
    int64_t before_ns = qp_thread_cpu_ns();
    int tool = qp_code_events_add((PyObject *)code, events, EVENT_KINDS);
    qp_watched_line.spent_ns += qp_thread_cpu_ns() - before_ns;
    qp_watched_line.tool = tool;
    qp_watched_line.is_changing = false;
    if (!tool || recording != qp_recording) { /* an audit hook ended the recording */
        qp_line_passes_clear();
        qp_line_watch_stop();
    }
    return tool != 0;
}

void qp_line_add_first_execution(const qp_key *key, uint64_t from_ticks)
{
    const qp_line_row *line = key->path > QP_PATH_OTHER ? innermost_line(key->path) : NULL;
    bool is_own = qp_watched_line.is_function ||
                  (line && line->function == qp_watched_line.function &&
                   line->file == qp_watched_line.file && is_in_line((int)line->line));
    qp_watched_line.has_executed = qp_watched_line.has_executed || is_own;
    if (!qp_watched_line.executed_ticks && from_ticks > qp_watched_line.from_ticks) {
        qp_watched_line.executed_ticks = from_ticks;
    }
    qp_line_passes_add_execution(is_own ? key : NULL);
}

QP_COLD void qp_line_add_execution(const qp_thread *thread, const qp_key *key, uint64_t from_ticks)
{
    const qp_submitter *submitter = qp_running_submitter();
    if (submitter && submitter->pass) {
        if (submitter->pass == qp_watched_line.serial && qp_watched_line.frame) {
            qp_line_add_first_execution(key, from_ticks);
        }
        return;
    }
    if (thread->tstate != qp_watched_line.tstate || !qp_watched_line.is_inside) {
        return;
    }
    if (qp_frame_is_running(thread->tstate, qp_watched_line.frame)) {
        qp_line_add_first_execution(key, from_ticks);
    } else if (qp_greenlets_are_loaded()) {
        qp_watched_line.is_mixed = true;
    } else {
        forget_pass(); /* an exception has ended the frame */
    }
}

void qp_line_watch_stop(void)
{
    PyObject *code = (PyObject *)qp_watched_line.code;
    if (!code || qp_watched_line.is_changing) {
        return;
    }
    qp_watched_line.is_changing = true;
    qp_line_passes_flush();
    qp_watched_line.code = NULL;
    qp_watched_line.frame = NULL;
    qp_watched_line.is_inside = false;
    int64_t before_ns = qp_thread_cpu_ns();
    qp_code_events_remove(code, qp_watched_line.tool, events, EVENT_KINDS);
    qp_exception exception = qp_exception_take();
    Py_DECREF(code);
    qp_exception_put_back(&exception);
    qp_watched_line.is_changing = false;
    qp_watched_line.spent_ns +=
        qp_thread_cpu_ns() - before_ns + qp_event_cost_ns(qp_watched_line.events);
}

#endif
