#include "calls/library_watch.h"

#include <string.h>

#include "calls/execution_samples.h"
#include "memory/region.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/exception.h"
#include "runtime/thread_local.h"
#include "stacks/code_lines.h"
#include "stacks/frames.h"
#include "stacks/library_entry.h"
#include "sums/library_times.h"

enum {
    TIMED = 64,          /* calls of a function that are timed in one watch, */
    ENOUGH = TIMED / 2,  /* ... from which on a statement and path is known; else it is watched */
    TRIES = 8,           /* ... so often at most, */
    EVALUATIONS = 50000, /* ... for so many frames at most: each costs about 40 ns more; */
    FREE = 200000,       /* in a whole recording for so many, */
    IDLE = 16,           /* sampled executions of others */
    EARNED = 8,          /* ... and so many more for each execution */
    KINDS = 16 * TIMED,  /* statements and paths in all these calls */
    LOOKED_INTO = 4 /* calls, to see whether the program's own code runs in them: evaluating all
                     * frames takes time, so these do not count if it does not */
};

/* Frames that one thread evaluates inside each other. Evaluated so, each takes space on the C
 * stack, which frames of Python do not otherwise. */
enum { NESTED = 150 };

/* One of so many is left out, the longest ones: a garbage collection or another thread came
 * between. */
enum { LEFT_OUT_OF = 16 };

/* The executions of a statement and path in one call. */
typedef struct {
    qp_key key;
    int64_t count;
} executed;

/* A call of the function. */
typedef struct {
    int64_t ns;
    int64_t executions;
    int kinds_end; /* of its kinds, which begin after those of the call before */
} timed_call;

static struct {
    PyCodeObject *entry;             /* of the function; owned; NULL: nothing is watched */
    PyThreadState *tstate;           /* identity only */
    PyInterpreterState *interpreter; /* its own, which records */
    const qp_thread *thread;         /* its record; identity only */
    uint32_t serial; /* of the watch: calls in progress may have begun in another one */
    int evaluations;
    int idle;            /* sampled executions since a call has begun */
    uint32_t plain_path; /* the last one that went through no library: loops use one */
    uint64_t spent;      /* evaluations of all watches of the recording */
    int looked_into;
    bool has_program; /* the program's own code was seen inside */
    /* the call in progress */
    bool in_progress;
    bool in_program; /* such code runs */
    int64_t program_ticks;
    /* ... and those that ended */
    int count;
    timed_call calls[TIMED + 1];
    int kinds;
    executed executions[KINDS];
} watch;

static uint8_t tries[QP_LIBRARIES]; /* by row */

static bool is_same(const qp_key *a, const qp_key *b)
{
    return a->statement == b->statement && a->path == b->path;
}

/* Kinds of the calls that have ended. */
static int kinds_before(void)
{
    return watch.count ? watch.calls[watch.count - 1].kinds_end : 0;
}

/* A call in which a statement was executed. */
typedef struct {
    const timed_call *call;
    int64_t count;
} sample;

/* The calls in which a statement and path was executed, shortest first. Returns how many. */
static int samples_of(const qp_key *key, sample found[TIMED])
{
    int count = 0, kind = 0;
    for (int i = 0; i < watch.count; i++) {
        const timed_call *call = &watch.calls[i];
        for (; kind < call->kinds_end; kind++) {
            if (!is_same(&watch.executions[kind].key, key)) {
                continue;
            }
            int at = count++;
            for (; at && found[at - 1].call->ns > call->ns; at--) {
                found[at] = found[at - 1];
            }
            found[at] = (sample){call, watch.executions[kind].count};
        }
    }
    return count;
}

static bool was_before(int kind)
{
    for (int i = 0; i < kind; i++) {
        if (is_same(&watch.executions[i].key, &watch.executions[kind].key)) {
            return true;
        }
    }
    return false;
}

void qp_library_watch_flush(void)
{
    int kinds = kinds_before();
    for (int kind = 0; kind < kinds; kind++) {
        const qp_key *key = &watch.executions[kind].key;
        qp_library_row *row = was_before(kind) ? NULL : qp_library_times_of(key);
        sample found[TIMED];
        int count = row ? samples_of(key, found) : 0;
        for (int i = 0; i < count - count / LEFT_OUT_OF; i++) {
            row->calls++;
            row->executions += found[i].count;
            row->others += found[i].call->executions - found[i].count;
            row->ns += found[i].call->ns;
        }
    }
    memmove(watch.executions, watch.executions + kinds,
            (size_t)(watch.kinds - kinds) * sizeof *watch.executions);
    watch.kinds -= kinds;
    watch.calls[0] = watch.calls[watch.count];
    watch.count = 0;
}

/* Whether all frames inside a call are evaluated. */
static bool looks_inside(void)
{
    return watch.looked_into < LOOKED_INTO || watch.has_program;
}

static void end_entry(int64_t ticks)
{
    timed_call *call = &watch.calls[watch.count];
    watch.in_progress = false;
    if (!call->executions) {
        return;
    }
    if (watch.looked_into++ < LOOKED_INTO && !watch.has_program) {
        *call = (timed_call){0};
        watch.kinds = kinds_before();
        return;
    }
    call->ns = qp_clock_ns(ticks - watch.program_ticks);
    call->kinds_end = watch.kinds;
    watch.calls[++watch.count] = (timed_call){0};
    if (watch.count == TIMED || watch.kinds > KINDS / 2) {
        qp_library_watch_stop();
    }
}

static bool is_program(qp_frame *frame, PyCodeObject *code)
{
    qp_code_owner owner;
    return qp_code_find(code, qp_frame_globals(frame), &owner) && owner == QP_CODE_USER;
}

static PyObject *evaluate(PyThreadState *tstate, struct _PyInterpreterFrame *frame, int throws);

/* Lets the interpreter evaluate frames through another function; false: it is not the one that is
 * expected. */
static bool exchange(_PyFrameEvalFunction from, _PyFrameEvalFunction to)
{
    bool is_from = _PyInterpreterState_GetEvalFrameFunc(watch.interpreter) == from;
    if (is_from) {
        _PyInterpreterState_SetEvalFrameFunc(watch.interpreter, to);
    }
    return is_from;
}

/* Evaluates a frame of the watched thread. */
static PyObject *evaluate_watched(PyThreadState *tstate, struct _PyInterpreterFrame *frame,
                                  int throws)
{
    PyCodeObject *code = qp_frame_code(frame);
    bool is_entry = !watch.in_progress && !throws && code == watch.entry;
    bool is_inside = watch.in_progress && !watch.in_program && !throws && is_program(frame, code);
    if (!is_entry && !is_inside) {
        return _PyEval_EvalFrameDefault(tstate, frame, throws);
    }
    watch.idle = is_entry ? 0 : watch.idle;
    bool is_native = is_entry && !looks_inside(); /* its frames are evaluated as without us */
    if (is_entry) {
        watch.program_ticks = 0;
    }
    watch.in_progress = true;
    watch.in_program = is_inside;
    watch.has_program = watch.has_program || is_inside;
    uint32_t serial = watch.serial;
    if (is_native && !exchange(evaluate, _PyEval_EvalFrameDefault)) {
        is_native = false;
    }
    uint64_t from = qp_clock_ticks();
    PyObject *result = _PyEval_EvalFrameDefault(tstate, frame, throws);
    int64_t ticks = qp_clock_elapsed(from, qp_clock_ticks());
    if (!watch.entry || watch.serial != serial) {
        return result;
    }
    if (is_native && !exchange(_PyEval_EvalFrameDefault, evaluate)) {
        qp_library_watch_stop(); /* another tool evaluates frames now */
    } else if (is_entry) {
        end_entry(ticks);
    } else {
        watch.in_program = false;
        watch.program_ticks += ticks;
    }
    return result;
}

/* Evaluates a frame (of the interpreter, which owns it) of any thread. */
static PyObject *evaluate(PyThreadState *tstate, struct _PyInterpreterFrame *frame, int throws)
{
    qp_local *here = &qp_here;
    uint32_t nested = here->evaluations;
    watch.spent++;
    if (++watch.evaluations > EVALUATIONS || nested >= NESTED) {
        qp_library_watch_stop();
    }
    here->evaluations = nested + 1;
    PyObject *result = watch.entry && tstate == watch.tstate
                           ? evaluate_watched(tstate, frame, throws)
                           : _PyEval_EvalFrameDefault(tstate, frame, throws);
    here->evaluations = nested;
    return result;
}

static bool is_query(const qp_key *key)
{
    const qp_statement_row *rows = qp_rows(QP_STATEMENT_ROWS);
    return rows[key->statement].can_be_explained; /* transactions belong to the others */
}

QP_COLD void qp_library_watch(const qp_call *call)
{
    if (watch.entry && ++watch.idle > IDLE) { /* a loop that has ended, or goes on in one call */
        qp_library_watch_stop();
    }
    const qp_key *key = &call->execution->meter.key;
    if (key->path == watch.plain_path) {
        return;
    }
    PyThreadState *tstate = call->thread->tstate;
    bool is_dear = watch.spent > FREE + EARNED * call->execution->serial;
    if (watch.entry || is_dear || !qp_frames_are_direct() || call->probe->is_awaited ||
        !is_query(key)) {
        return;
    }
    PyCodeObject *entry = qp_library_entry(tstate);
    watch.plain_path = entry ? watch.plain_path : key->path;
    qp_library_row *row = entry ? qp_library_times_of(key) : NULL;
    uint8_t *tried = row ? &tries[row - (qp_library_row *)qp_rows(QP_LIBRARY_ROWS)] : NULL;
    watch.interpreter = PyThreadState_GetInterpreter(tstate);
    if (!row || row->calls >= ENOUGH || *tried == TRIES ||
        !exchange(_PyEval_EvalFrameDefault, evaluate)) {
        return;
    }
    ++*tried;
    watch.serial++;
    watch.entry = (PyCodeObject *)Py_NewRef((PyObject *)entry);
    watch.tstate = tstate;
    watch.thread = call->thread;
    watch.evaluations = watch.count = watch.kinds = 0;
    watch.idle = 0;
    watch.calls[0] = (timed_call){0};
    watch.looked_into = 0;
    watch.in_progress = watch.in_program = watch.has_program = false;
    qp_execution_notes |= QP_NOTES_LIBRARY;
}

QP_COLD void qp_library_note(const qp_call *call)
{
    const qp_key *key = &call->execution->meter.key;
    if (call->thread != watch.thread || !watch.in_progress || watch.in_program || !is_query(key)) {
        return;
    }
    int kind = kinds_before();
    while (kind < watch.kinds && !is_same(&watch.executions[kind].key, key)) {
        kind++;
    }
    watch.calls[watch.count].executions++;
    if (kind == watch.kinds && kind < KINDS) {
        watch.executions[watch.kinds++] = (executed){*key, 0};
    }
    if (kind < KINDS) {
        watch.executions[kind].count++;
    }
}

void qp_library_watch_stop(void)
{
    PyCodeObject *entry = watch.entry;
    if (!entry) {
        return;
    }
    qp_library_watch_flush();
    exchange(evaluate, _PyEval_EvalFrameDefault);
    watch.entry = NULL;
    qp_execution_notes &= (uint8_t)~QP_NOTES_LIBRARY;
    qp_exception exception = qp_exception_take(); /* of a call that ends */
    Py_DECREF((PyObject *)entry);
    qp_exception_put_back(&exception);
}

void qp_library_watch_clear(void)
{
    qp_library_watch_stop();
    memset(tries, 0, sizeof tries);
    watch.spent = watch.plain_path = 0;
}

void qp_library_watch_after_fork(void)
{
    watch.count = watch.kinds = 0; /* the parent's, as its rows are */
    qp_library_watch_clear();
}
