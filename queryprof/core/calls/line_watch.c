#include "calls/line_watch.h"

#include "calls/line_passes.h"
#include "runtime/exception.h"

uint8_t qp_lines_seen[1 << QP_SEEN_BITS];

#if PY_VERSION_HEX >= 0x030C0000

#include <string.h>

#include "calls/execution_samples.h"
#include "memory/region.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/cpu_time.h"
#include "stacks/code_lines.h"
#include "stacks/frames.h"
#include "stacks/greenlets.h"
#include "stacks/library_entry.h"
#include "stacks/submitter.h"
#include "sums/line_times.h"

enum {
    FRAMES = 250,      /* searched for the program's own */
    EVENTS = 4000,     /* of one watch */
    EVENT_NS = 80,     /* what an event takes; in a loop of empty lines it was 38 to 78 */
    SHARE = 200,       /* watches may cost this part of the time since the recording began, ... */
    FREE_NS = 2000000, /* ... and as much as this besides */
    LIBRARY_LOOP = 4,  /* so many executions of a statement in one pass are a library's loop */
    SUBMISSIONS = 16,  /* one of so many is sampled */
    PATHS = 256,       /* places for their paths; some share one */
    FRUITLESS = 4,     /* passes without an execution end a watch */
    HALVED = 8         /* passes, from which on the sums of a row can be halved */
};

/* A watch ends when so many sampled executions come without a new pass: of its thread in other
 * lines, where the line was passed once, or more often; and of other threads, or in a pass that
 * does not end. */
enum { IDLE_ONCE = 1, IDLE = 4, ELSEWHERE = 64 };

/* Numbers of tools, those that the fewest programs use first: 0 to 2 are a debugger's, coverage's
 * and a profiler's, and 5 is an optimizer's. */
static const int tools[] = {5, 4, 3};

static struct {
    PyCodeObject *code;        /* of the line; owned; NULL: nothing is watched */
    PyThreadState *tstate;     /* identity only */
    const qp_thread *thread;   /* its record; identity only */
    int first_line, last_line; /* of the expression that executes the statement */
    bool is_function;          /* all lines of a library's function are watched */
    int tool;
    int events;
    int passes;        /* that have ended */
    bool has_executed; /* a statement was, in one of them */
    int idle, elsewhere;
    /* the pass in progress */
    uint64_t serial;   /* its number in this process */
    const void *frame; /* identity of the frame that runs it; NULL: there is none */
    bool is_inside;    /* the frame is in the line */
    bool is_suspended; /* the generator or coroutine is, in the line */
    bool is_partial;   /* its begin was not seen */
    bool is_mixed;     /* another greenlet has executed something meanwhile */
    uint64_t from_ticks;
    int64_t ticks;
    /* of all watches of a recording */
    bool is_refused;      /* no tool number is free */
    uint64_t since_ticks; /* when they may have begun */
    int64_t spent_ns;
    uint32_t plain_path;            /* the last one that went through no library: loops use one */
    bool finds_loop;                /* a library executes the statement in a loop of its own */
    bool in_library[QP_LINE_TIMES]; /* by row: so it does */
    /* Of submissions, by their path. */
    uint32_t path_hits[PATHS], path_due[PATHS];
    /* By row: sampled executions, and how many are the next to begin a watch: twice as many each
     * time, as a pass may take longer the longer a program runs. */
    uint32_t hits[QP_LINE_TIMES], due[QP_LINE_TIMES];
} watch;

static PyObject *on_line(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_jump(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_start(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_resume(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_yield(PyObject *module, PyObject *const *args, Py_ssize_t count);
static PyObject *on_return(PyObject *module, PyObject *const *args, Py_ssize_t count);

#define CALLBACK(function) {#function, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL}

static struct {
    const char *event;   /* its name in sys.monitoring.events */
    bool is_of_function; /* needed where all lines of a function are watched */
    PyMethodDef callback;
} events[] = {
    {"LINE", false, CALLBACK(on_line)},      {"JUMP", false, CALLBACK(on_jump)},
    {"PY_START", true, CALLBACK(on_start)},  {"PY_RESUME", false, CALLBACK(on_resume)},
    {"PY_YIELD", false, CALLBACK(on_yield)}, {"PY_RETURN", true, CALLBACK(on_return)},
};

enum { EVENT_KINDS = sizeof events / sizeof *events };

/* Calls a function of sys.monitoring. Returns a new reference, or NULL with an exception. */
static PyObject *monitoring(const char *function, const char *format, ...)
{
    PyObject *module = PySys_GetObject("monitoring"); /* borrowed */
    PyObject *callable = module ? PyObject_GetAttrString(module, function) : NULL;
    va_list list;
    va_start(list, format);
    PyObject *args = callable ? Py_VaBuildValue(format, list) : NULL;
    va_end(list);
    PyObject *result = args ? PyObject_CallObject(callable, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(callable);
    return result;
}

/* Calls a function of sys.monitoring for its effect; false: it raised. */
#define MONITOR(...) is_done(monitoring(__VA_ARGS__))

static bool is_done(PyObject *result)
{
    Py_XDECREF(result);
    return result != NULL;
}

/* The number of an event in sys.monitoring.events; 0 with an exception. */
static long event_number(const char *name)
{
    PyObject *module = PySys_GetObject("monitoring");
    PyObject *names = module ? PyObject_GetAttrString(module, "events") : NULL;
    PyObject *number = names ? PyObject_GetAttrString(names, name) : NULL;
    long found = number ? PyLong_AsLong(number) : 0;
    Py_XDECREF(number);
    Py_XDECREF(names);
    return PyErr_Occurred() ? 0 : found;
}

/* Takes a free tool number; false: there is none. */
static bool take_tool(void)
{
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        PyObject *owner = monitoring("get_tool", "(i)", tools[i]);
        bool is_free = owner && Py_IsNone(owner);
        Py_XDECREF(owner);
        if (is_free && MONITOR("use_tool_id", "(is)", tools[i], "queryprof")) {
            watch.tool = tools[i];
            return true;
        }
        PyErr_Clear();
    }
    return false;
}

/* Lets the interpreter report the events of a code object; false with an exception. */
static bool add_events(PyObject *code)
{
    long mask = 0;
    for (int i = 0; i < EVENT_KINDS; i++) {
        long number = event_number(events[i].event);
        PyObject *function = number ? PyCFunction_New(&events[i].callback, NULL) : NULL;
        bool is_set =
            function && MONITOR("register_callback", "(ilO)", watch.tool, number, function);
        Py_XDECREF(function);
        if (!is_set) {
            return false;
        }
        mask |= watch.is_function && !events[i].is_of_function ? 0 : number;
    }
    return MONITOR("set_local_events", "(iOl)", watch.tool, code, mask);
}

/* Gives the tool number back. The program may have freed it, so that errors are ignored. */
static void remove_events(PyObject *code)
{
    PyObject *owner = monitoring("get_tool", "(i)", watch.tool);
    if (owner && PyUnicode_Check(owner) &&
        PyUnicode_CompareWithASCIIString(owner, "queryprof") == 0) {
        if (!MONITOR("set_local_events", "(iOi)", watch.tool, code, 0)) {
            PyErr_Clear();
        }
        for (int i = 0; i < EVENT_KINDS; i++) {
            if (!MONITOR("register_callback", "(ilO)", watch.tool, event_number(events[i].event),
                         Py_None)) {
                PyErr_Clear();
            }
        }
        if (!MONITOR("free_tool_id", "(i)", watch.tool)) {
            PyErr_Clear();
        }
    }
    Py_XDECREF(owner);
    PyErr_Clear();
}

static bool is_in_line(int line)
{
    return watch.first_line <= line && line <= watch.last_line;
}

/* Adds the time since the frame has entered the line. */
static void leave_line(void)
{
    if (watch.is_inside) {
        watch.ticks += qp_clock_elapsed(watch.from_ticks, qp_clock_ticks());
        watch.is_inside = false;
    }
}

static void enter_line(void)
{
    watch.is_inside = true;
    watch.idle = watch.elsewhere = 0;
    watch.from_ticks = qp_clock_ticks();
}

/* Ends the pass in progress; the watch, too, when enough have ended. */
static void end_pass(void)
{
    int64_t ticks = watch.ticks;
    watch.ticks = 0;
    bool is_partial = watch.is_partial;
    watch.is_partial = false;
    watch.serial++;
    watch.passes++;
    if (watch.is_mixed) {
        watch.is_mixed = false;
        qp_line_passes_drop();
    } else if (qp_line_passes_end(qp_clock_ns(ticks), is_partial) ||
               (!watch.has_executed && watch.passes >= FRUITLESS)) {
        qp_line_watch_stop();
    }
}

/* Forgets the pass in progress: its frame has ended by an exception. */
static void drop_pass(void)
{
    watch.frame = NULL;
    watch.is_inside = watch.is_suspended = watch.is_partial = watch.is_mixed = false;
    watch.ticks = 0;
    watch.serial++;
    qp_line_passes_drop();
    qp_line_passes_part();
}

/* Whether the frame of the pass in progress runs: where its line calls its own function again, the
 * outer pass counts. */
static bool is_recursion(void)
{
    return watch.frame && qp_frame_is_running(watch.tstate, watch.frame);
}

/* Begins the first pass of a frame. */
static void begin_pass(const void *frame)
{
    drop_pass();
    watch.frame = frame;
    enter_line();
}

/* The identity of the frame that reports an event; NULL: it is another thread's, or of a code
 * object that is not watched any more. */
static const void *reporting_frame(PyObject *const *args, Py_ssize_t count)
{
    if (!watch.code || count < 2 || args[0] != (PyObject *)watch.code) {
        return NULL;
    }
    if (++watch.events > EVENTS) {
        leave_line();
        end_pass();
        qp_line_watch_stop();
        return NULL;
    }
    PyThreadState *tstate = PyThreadState_Get();
    return tstate == watch.tstate ? qp_frame_running(tstate) : NULL;
}

static PyObject *on_line(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    const void *frame = reporting_frame(args, count);
    if (!frame) {
        Py_RETURN_NONE;
    }
    int line = (int)PyLong_AsLong(args[1]);
    if (frame != watch.frame) {
        if (is_in_line(line) && !is_recursion()) {
            begin_pass(frame);
        }
        Py_RETURN_NONE;
    }
    bool was_inside = watch.is_inside;
    leave_line();
    watch.is_suspended = false;
    if (was_inside && (!is_in_line(line) || line == watch.first_line)) {
        end_pass();
    }
    if (watch.code && is_in_line(line)) {
        enter_line();
    }
    Py_RETURN_NONE;
}

/* A comprehension is a loop in one line, which starts once. */
static PyObject *on_jump(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    bool is_backward =
        watch.is_inside && count > 2 && PyLong_AsLong(args[2]) < PyLong_AsLong(args[1]);
    if (is_backward && reporting_frame(args, count) == watch.frame) {
        leave_line();
        end_pass();
        if (watch.code) {
            enter_line();
        }
    }
    Py_RETURN_NONE;
}

static PyObject *on_start(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    const void *frame = watch.frame || watch.is_function ? reporting_frame(args, count) : NULL;
    if (frame && frame == watch.frame) {
        drop_pass(); /* another call of the function, in the same place of memory */
    }
    if (frame && watch.is_function && !is_recursion()) {
        begin_pass(frame);
    }
    Py_RETURN_NONE;
}

static PyObject *on_resume(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (watch.is_suspended && reporting_frame(args, count) == watch.frame) {
        watch.is_suspended = false;
        enter_line();
    }
    Py_RETURN_NONE;
}

static PyObject *on_yield(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (watch.is_inside && reporting_frame(args, count) == watch.frame) {
        leave_line();
        watch.is_suspended = true;
    }
    Py_RETURN_NONE;
}

static PyObject *on_return(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (watch.frame && reporting_frame(args, count) == watch.frame) {
        leave_line();
        end_pass();
        watch.frame = NULL;
        qp_line_passes_part();
    }
    Py_RETURN_NONE;
}

/* The program's own line that executes a statement. */
typedef struct {
    PyCodeObject *code; /* borrowed: a frame runs it; NULL: the program calls the driver itself */
    const void *frame;
    int instruction;
    bool has_library; /* between the line and the driver */
} user_line;

static bool look_at(void *context, PyCodeObject *code, PyObject *globals, int instruction)
{
    user_line *found = context;
    qp_code_owner owner;
    if (!qp_code_find(code, globals, &owner) || owner == QP_CODE_IGNORED) {
        return true;
    }
    found->has_library = found->has_library || owner == QP_CODE_LIBRARY;
    if (owner == QP_CODE_USER && found->has_library) {
        found->code = code;
        found->instruction = instruction;
    }
    return owner == QP_CODE_USER;
}

static user_line find_line(PyThreadState *tstate)
{
    user_line found = {0};
    qp_frame *frame = qp_frame_running(tstate);
    bool is_found = false;
    for (int i = 0; frame && !is_found && i < FRAMES; i++) {
        is_found = look_at(&found, qp_frame_code(frame), qp_frame_globals(frame),
                           qp_frame_instruction(frame));
        if (is_found) {
            found.frame = frame;
        } else {
            frame = qp_frame_outer(frame);
        }
    }
    qp_frame_release(frame);
    if (!is_found && !frame && qp_greenlets_are_loaded()) {
        qp_greenlets_visit(look_at, &found);
    }
    return found;
}

/* Whether the line is passed no more, by a sampled execution in another line or thread. */
static bool is_idle(const qp_thread *thread, const PyCodeObject *code)
{
    bool is_inside = watch.is_inside && (watch.is_function || code == watch.code);
    bool is_outside = thread == watch.thread && !is_inside;
    watch.idle += is_outside;
    watch.elsewhere += !is_outside;
    return watch.idle >= (watch.passes > 1 ? IDLE : IDLE_ONCE) || watch.elsewhere >= ELSEWHERE;
}

/* Whether a library executes a statement again and again in the pass in progress. */
static bool is_library_loop(const qp_thread *thread, const qp_key *key, const PyCodeObject *code)
{
    return !watch.is_function && code == watch.code && thread == watch.thread && watch.is_inside &&
           qp_line_passes_count(key) >= LIBRARY_LOOP;
}

/* Finds the lines of the expression that a frame runs; false: they are unknown. */
static bool find_lines(const user_line *line)
{
    int first_column, last_column;
    return line->instruction >= 0 &&
           PyCode_Addr2Location(line->code, line->instruction, &watch.first_line, &first_column,
                                &watch.last_line, &last_column) &&
           watch.first_line > 0;
}

/* Begins to watch a code object in the running thread. `frame` is that which runs the line; NULL:
 * it is not known, or the code is a library's function. */
static void begin(PyCodeObject *code, const void *frame, const qp_thread *thread,
                  uint64_t from_ticks)
{
    watch.code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    watch.tstate = thread->tstate;
    watch.thread = thread;
    watch.events = watch.passes = watch.idle = watch.elsewhere = 0;
    watch.is_suspended = watch.is_mixed = watch.has_executed = false;
    watch.frame = frame;
    watch.is_inside = watch.is_partial = frame != NULL;
    watch.from_ticks = from_ticks;
    watch.ticks = 0;
    watch.serial++;
    qp_line_passes_clear();
    int64_t before_ns = qp_thread_cpu_ns();
    qp_exception exception = qp_exception_take();
    bool is_begun = take_tool() && add_events((PyObject *)code);
    PyErr_Clear();
    qp_exception_put_back(&exception);
    watch.spent_ns += qp_thread_cpu_ns() - before_ns;
    if (is_begun) {
        qp_execution_notes |= QP_NOTES_LINE;
    } else {
        watch.is_refused = true; /* other tools use all numbers */
        qp_line_watch_stop();
    }
}

/* Whether the watches have cost as much as they may. */
static bool is_dear(uint64_t now)
{
    if (!watch.since_ticks) {
        watch.since_ticks = now;
    }
    int64_t elapsed_ns = qp_clock_ns(qp_clock_elapsed(watch.since_ticks, now));
    return watch.spent_ns > FREE_NS + elapsed_ns / SHARE;
}

static void note(const qp_key *key)
{
    watch.has_executed = true;
    qp_line_passes_note(key);
}

/* Begins to watch the line that executes a statement; or, where a library executes it in a loop of
 * its own, the library's function inside that loop. */
static void watch_line(const user_line *line, const qp_thread *thread, const qp_key *key,
                       uint64_t from_ticks)
{
    qp_line_time_row *row = qp_line_times_of(key);
    if (!row) {
        return;
    }
    size_t number = (size_t)(row - (qp_line_time_row *)qp_rows(QP_LINE_TIME_ROWS));
    bool *in_library = &watch.in_library[number];
    if (!*in_library && (watch.finds_loop || 2 * row->executions > 3 * row->passes)) {
        *in_library = true;
        row->passes = row->executions = row->others = row->ns = 0;
        watch.due[number] = 0;
    }
    watch.finds_loop = false;
    watch.is_function = *in_library;
    PyCodeObject *entry = *in_library ? qp_library_entry(thread->tstate) : NULL;
    if (++watch.hits[number] < watch.due[number] || (*in_library ? !entry : !find_lines(line))) {
        return;
    }
    watch.due[number] = 2 * watch.hits[number];
    if (row->passes >= HALVED) { /* each watch stands for as many executions as all before it */
        row->passes /= 2;
        row->executions /= 2;
        row->others /= 2;
        row->ns /= 2;
    }
    begin(entry ? entry : line->code, entry ? NULL : line->frame, thread, from_ticks);
    if (watch.frame) {
        note(key);
    }
}

QP_COLD void qp_line_watch(const qp_thread *thread, const qp_key *key, uint64_t from_ticks)
{
    if (watch.is_refused || key->path == watch.plain_path || !qp_frames_are_direct() ||
        (!watch.code && is_dear(from_ticks))) {
        return;
    }
    user_line line = find_line(thread->tstate);
    if (!line.code) {
        watch.plain_path = key->path;
    }
    if (watch.code) {
        watch.finds_loop = is_library_loop(thread, key, line.code);
        if (!watch.finds_loop && !is_idle(thread, line.code)) {
            return;
        }
        qp_line_watch_stop();
    }
    if (line.code && !is_dear(from_ticks)) {
        watch_line(&line, thread, key, from_ticks);
    }
}

/* Begins to watch the line that submits work. */
static QP_COLD void watch_submission(const qp_thread *thread, uint32_t path)
{
    uint64_t now = qp_clock_ticks();
    if (watch.code && is_idle(thread, watch.code)) {
        qp_line_watch_stop();
    }
    if (watch.code || watch.is_refused || !qp_frames_are_direct() || is_dear(now)) {
        return;
    }
    user_line line = find_line(thread->tstate);
    uint32_t place = path % PATHS;
    if (line.code && ++watch.path_hits[place] >= watch.path_due[place] && find_lines(&line)) {
        watch.path_due[place] = 2 * watch.path_hits[place];
        watch.is_function = false;
        begin(line.code, line.frame, thread, now);
    }
}

uint64_t qp_line_watch_submission(const qp_thread *thread, uint32_t path)
{
    if (qp_thread_random((qp_thread *)thread) % SUBMISSIONS == 0) {
        watch_submission(thread, path);
    }
    return watch.is_inside && thread == watch.thread ? watch.serial : 0;
}

QP_COLD void qp_line_note(const qp_call *call)
{
    const qp_submitter *submitter = qp_submitter_now();
    if (submitter && submitter->pass) {
        if (submitter->pass == watch.serial && watch.frame) {
            note(&call->execution->meter.key);
        }
        return;
    }
    if (call->thread != watch.thread || !watch.is_inside) {
        return;
    }
    if (qp_greenlets_are_loaded() && !qp_frame_is_running(watch.tstate, watch.frame)) {
        watch.is_mixed = true;
    } else {
        note(&call->execution->meter.key);
    }
}

void qp_line_watch_stop(void)
{
    PyObject *code = (PyObject *)watch.code;
    if (!code) {
        return;
    }
    qp_line_passes_flush();
    watch.code = NULL;
    watch.frame = NULL;
    watch.is_inside = false;
    qp_execution_notes &= (uint8_t)~QP_NOTES_LINE;
    int64_t before_ns = qp_thread_cpu_ns();
    qp_exception exception = qp_exception_take();
    remove_events(code);
    Py_DECREF(code);
    qp_exception_put_back(&exception);
    watch.spent_ns += qp_thread_cpu_ns() - before_ns + (int64_t)watch.events * EVENT_NS;
}

void qp_line_watch_clear(void)
{
    qp_line_watch_stop();
    watch.is_refused = false;
    watch.since_ticks = 0;
    watch.spent_ns = 0;
    watch.plain_path = 0;
    watch.finds_loop = false;
    memset(watch.in_library, 0, sizeof watch.in_library);
    memset(qp_lines_seen, 0, sizeof qp_lines_seen);
    memset(watch.hits, 0, sizeof watch.hits);
    memset(watch.due, 0, sizeof watch.due);
    memset(watch.path_hits, 0, sizeof watch.path_hits);
    memset(watch.path_due, 0, sizeof watch.path_due);
}

#else

void qp_line_watch(const qp_thread *thread, const qp_key *key, uint64_t from_ticks)
{
    (void)thread, (void)key, (void)from_ticks;
}

uint64_t qp_line_watch_submission(const qp_thread *thread, uint32_t path)
{
    (void)thread, (void)path;
    return 0;
}

void qp_line_note(const qp_call *call)
{
    (void)call;
}

void qp_line_watch_stop(void) {}

void qp_line_watch_clear(void) {}

#endif

void qp_line_watch_after_fork(void)
{
    qp_line_passes_clear(); /* the parent's, as its rows are */
    qp_line_watch_clear();
}
