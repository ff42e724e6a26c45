#include "calls/library_watch.h"

#include <string.h>

#include "calls/execution_samples.h"
#include "calls/library_calls.h"
#include "memory/region.h"
#include "runtime/c_stack.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/exception.h"
#include "runtime/thread_local.h"
#include "stacks/code_lines.h"
#include "stacks/frames.h"
#include "stacks/greenlets.h"
#include "stacks/library_entry.h"
#include "sums/library_times.h"

enum {
    TRIES = 8,           /* watches for one statement and path, */
    EVALUATIONS = 25000, /* ... of so many frames at most: each costs about 70 ns more; */
    LOOKS = 2000,        /* ... in a call so many: what is beyond is not known; */
    FREE = 100000,       /* in a whole recording so many, */
    EARNED = 16          /* ... and so many more for each execution */
};

/* Sampled executions without a call of the function, from which on another one is watched: of its
 * thread, outside of a call; and of other threads, or in a call that goes on. */
enum { IDLE = 4, ELSEWHERE = 64 };

/* What is evaluated takes space on the C stack, which frames of Python do not otherwise: so many
 * bytes of it, where so many are left for everything else. */
enum { STACK_USED = 128 * 1024, STACK_LEFT = 512 * 1024 };

static struct {
    PyCodeObject *entry;             /* of the function; owned; NULL: nothing is watched */
    PyInterpreterState *interpreter; /* which records */
    PyThreadState *tstate;           /* identity only */
    const qp_thread *thread;         /* its record; identity only */
    uint32_t serial; /* of the watch: calls in progress may have begun in another one */
    int evaluations;
    int idle, elsewhere; /* sampled executions since a call has begun */
    uint32_t random;     /* state of a generator */
    bool looks_inside; /* all frames inside the next call are evaluated: of about every second one,
                        * to see whether the program's own code runs there. That takes time, so the
                        * call does not count if none does. */
    bool has_program;  /* such code was seen */
    /* the call in progress */
    bool in_progress;
    bool in_program;   /* such code runs */
    bool is_mixed;     /* another greenlet executed something meanwhile, or it was seen in part */
    const void *frame; /* its identity */
    int64_t program_ticks;
    int looks;  /* evaluations in it */
    bool rests; /* they were enough */
    /* of all watches of a recording */
    uint64_t spent;              /* evaluations */
    uint32_t plain_path;         /* the last one that went through no library: loops use one */
    uint8_t *tried;              /* of the row that is watched */
    uint8_t tries[QP_LIBRARIES]; /* by row */
} watch;

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

/* Lets the interpreter evaluate frames itself for a while; false: another tool does. */
static bool pause_watch(void)
{
    return exchange(evaluate, _PyEval_EvalFrameDefault);
}

static bool resume_watch(void)
{
    return exchange(_PyEval_EvalFrameDefault, evaluate) ||
           _PyInterpreterState_GetEvalFrameFunc(watch.interpreter) == evaluate;
}

#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
/* What CPython 3.12 and 3.13 take the evaluation of a frame for, of the calls in C that may be
 * inside each other (PY_EVAL_C_STACK_UNITS in Python/ceval.c). That limit is the program's. */
enum { CALLS_IN_C = 2 };
#endif

/* Evaluates a frame as the interpreter does. */
static PyObject *evaluate_natively(PyThreadState *tstate, struct _PyInterpreterFrame *frame,
                                   int throws)
{
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    tstate->c_recursion_remaining += CALLS_IN_C;
    PyObject *result = _PyEval_EvalFrameDefault(tstate, frame, throws);
    tstate->c_recursion_remaining -= CALLS_IN_C;
    return result;
#else
    return _PyEval_EvalFrameDefault(tstate, frame, throws);
#endif
}

static void end_entry(int64_t ticks, bool looked_inside)
{
    watch.in_progress = false;
    watch.random = watch.random * 1664525 + 1013904223; /* Numerical Recipes, 7.1 */
    watch.looks_inside = watch.has_program || watch.random >> 31;
    if (watch.is_mixed || (looked_inside && !watch.has_program)) {
        qp_library_calls_drop();
    } else if (qp_library_calls_end(qp_clock_ns(ticks - watch.program_ticks))) {
        qp_library_watch_stop();
    }
}

/* Ends the watch of a function whose time cannot be separated from the program's. */
static void give_up(void)
{
    *watch.tried = TRIES;
    qp_library_calls_clear();
    qp_library_watch_stop();
}

static PyObject *evaluate_entry(PyThreadState *tstate, struct _PyInterpreterFrame *frame)
{
    uint32_t serial = watch.serial;
    watch.in_progress = true;
    watch.is_mixed = false;
    watch.frame = frame;
    watch.program_ticks = 0;
    watch.looks = 0;
    watch.rests = false;
    watch.idle = watch.elsewhere = 0;
    /* Without a look inside, all there is as without us. */
    bool is_native = !watch.looks_inside && pause_watch();
    uint64_t from = qp_clock_ticks();
    PyObject *result = evaluate_natively(tstate, frame, 0);
    int64_t ticks = qp_clock_elapsed(from, qp_clock_ticks());
    if (!watch.entry || watch.serial != serial) {
        return result;
    }
    bool is_paused = is_native || watch.rests;
    watch.is_mixed = watch.is_mixed || watch.rests;
    if (is_paused && !resume_watch()) {
        qp_library_watch_stop();
    } else if (watch.rests && !watch.has_program) {
        give_up(); /* whether the program's code runs there is not known */
    } else {
        end_entry(ticks, !is_native);
    }
    return result;
}

/* Evaluates the program's own code inside a call; all that it calls is the program's, and as
 * without us. */
static PyObject *evaluate_program(PyThreadState *tstate, struct _PyInterpreterFrame *frame)
{
    uint32_t serial = watch.serial;
    if (!watch.has_program) {
        qp_library_calls_drop_ended(); /* it may have run in those, too */
    }
    watch.has_program = watch.in_program = true;
    bool is_paused = pause_watch();
    uint64_t from = qp_clock_ticks();
    PyObject *result = evaluate_natively(tstate, frame, 0);
    int64_t ticks = qp_clock_elapsed(from, qp_clock_ticks());
    if (watch.entry && watch.serial == serial) {
        watch.in_program = false;
        watch.program_ticks += ticks;
        if (is_paused && !resume_watch()) {
            qp_library_watch_stop();
        }
    }
    return result;
}

/* Not inlined: objects on the stacks of frames, which greenlets copy, would be guarded by
 * AddressSanitizer. */
static QP_COLD bool is_program(qp_frame *frame)
{
    qp_code_owner owner;
    return qp_code_find(qp_frame_code(frame), qp_frame_globals(frame), &owner) &&
           owner == QP_CODE_USER;
}

/* Evaluates a frame of the watched thread. */
static PyObject *evaluate_watched(PyThreadState *tstate, struct _PyInterpreterFrame *frame,
                                  int throws)
{
    if (throws) { /* an exception is set: a generator goes on */
        return evaluate_natively(tstate, frame, throws);
    }
    if (!watch.in_progress) {
        return qp_frame_code(frame) == watch.entry ? evaluate_entry(tstate, frame)
                                                   : evaluate_natively(tstate, frame, 0);
    }
    return !watch.in_program && is_program(frame) ? evaluate_program(tstate, frame)
                                                  : evaluate_natively(tstate, frame, 0);
}

/* Whether there is room for a frame on the running thread's C stack, which greenlets share. */
static bool has_room(void)
{
    qp_local *here = &qp_here;
    uintptr_t now = qp_c_stack_here();
    if (!here->stack_low) {
        here->stack_low = qp_c_stack_low();
    }
    if (now > here->evaluated_from) {
        here->evaluated_from = now;
    }
    return now > here->stack_low && now - here->stack_low > STACK_LEFT &&
           here->evaluated_from - now < STACK_USED;
}

/* Evaluates a frame, and all inside it, as without us. */
static PyObject *evaluate_paused(PyThreadState *tstate, struct _PyInterpreterFrame *frame,
                                 int throws)
{
    uint32_t serial = watch.serial;
    bool is_paused = pause_watch();
    PyObject *result = evaluate_natively(tstate, frame, throws);
    if (is_paused && watch.entry && watch.serial == serial) {
        resume_watch();
    }
    return result;
}

/* Evaluates a frame (of the interpreter, which owns it) of any thread. */
static PyObject *evaluate(PyThreadState *tstate, struct _PyInterpreterFrame *frame, int throws)
{
    watch.spent++;
    if (++watch.evaluations > EVALUATIONS) {
        qp_library_watch_stop();
    }
    if (!watch.entry) { /* also where a tool has kept this function, and put it back later */
        pause_watch();
        return evaluate_natively(tstate, frame, throws);
    }
    bool is_inside = watch.in_progress && tstate == watch.tstate;
    bool is_room = has_room();
    if (is_inside && (++watch.looks > LOOKS || !is_room)) {
        watch.rests = pause_watch(); /* up to the end of the call */
        return evaluate_natively(tstate, frame, throws);
    }
    if (!is_room) {
        return evaluate_paused(tstate, frame, throws);
    }
    return tstate == watch.tstate ? evaluate_watched(tstate, frame, throws)
                                  : evaluate_natively(tstate, frame, throws);
}

static bool is_query(const qp_key *key)
{
    const qp_statement_row *rows = qp_rows(QP_STATEMENT_ROWS);
    return rows[key->statement].can_be_explained; /* transactions belong to the others */
}

/* Whether the function is called no more, by a sampled execution: its loop has ended, or goes on in
 * one call. */
static bool is_idle(const qp_call *call)
{
    bool is_outside = call->thread == watch.thread && !watch.in_progress;
    watch.idle += is_outside;
    watch.elsewhere += !is_outside;
    return watch.idle > IDLE || watch.elsewhere > ELSEWHERE;
}

/* Begins to watch a function in the running thread; false: another tool evaluates frames. */
static bool begin(PyCodeObject *entry, const qp_call *call)
{
    watch.interpreter = PyThreadState_GetInterpreter(call->thread->tstate);
    if (!exchange(_PyEval_EvalFrameDefault, evaluate)) {
        return false;
    }
    watch.serial++;
    watch.entry = (PyCodeObject *)Py_NewRef((PyObject *)entry);
    watch.tstate = call->thread->tstate;
    watch.thread = call->thread;
    watch.evaluations = watch.idle = watch.elsewhere = 0;
    watch.looks_inside = true;
    qp_here.evaluated_from = 0;
    watch.in_progress = watch.in_program = watch.has_program = false;
    qp_library_calls_clear();
    qp_execution_notes |= QP_NOTES_LIBRARY;
    return true;
}

QP_COLD void qp_library_watch(const qp_call *call)
{
    if (watch.entry && is_idle(call)) {
        qp_library_watch_stop();
    }
    const qp_key *key = &call->execution->meter.key;
    bool is_dear = watch.spent > FREE + EARNED * call->execution->serial;
    if (watch.entry || is_dear || key->path == watch.plain_path || !qp_frames_are_direct() ||
        call->probe->is_awaited || !is_query(key) || !has_room()) {
        return;
    }
    PyCodeObject *entry = qp_library_entry(call->thread->tstate);
    watch.plain_path = entry ? watch.plain_path : key->path;
    qp_library_row *row = entry ? qp_library_times_of(key) : NULL;
    if (row && row->calls < QP_LIBRARY_CALLS_ENOUGH) {
        uint8_t *tried = &watch.tries[row - (qp_library_row *)qp_rows(QP_LIBRARY_ROWS)];
        if (*tried < TRIES && begin(entry, call)) {
            ++*tried;
            watch.tried = tried;
        }
    }
}

QP_COLD void qp_library_note(const qp_call *call)
{
    const qp_key *key = &call->execution->meter.key;
    if (call->thread != watch.thread || !watch.in_progress || watch.in_program || !is_query(key)) {
        return;
    }
    if (qp_greenlets_are_loaded() && !qp_frame_is_running(watch.tstate, watch.frame)) {
        watch.is_mixed = true;
    } else {
        qp_library_calls_note(key);
    }
}

void qp_library_watch_stop(void)
{
    PyCodeObject *entry = watch.entry;
    if (!entry) {
        return;
    }
    qp_library_calls_flush();
    pause_watch();
    watch.entry = NULL;
    qp_execution_notes &= (uint8_t)~QP_NOTES_LIBRARY;
    qp_exception exception = qp_exception_take(); /* of a call that ends */
    Py_DECREF((PyObject *)entry);
    qp_exception_put_back(&exception);
}

void qp_library_watch_clear(void)
{
    qp_library_watch_stop();
    memset(watch.tries, 0, sizeof watch.tries);
    watch.spent = watch.plain_path = 0;
}

void qp_library_watch_after_fork(void)
{
    qp_library_calls_clear(); /* the parent's, as its rows are */
    qp_library_watch_clear();
}
