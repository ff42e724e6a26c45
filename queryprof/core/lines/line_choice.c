#include "lines/line_choice.h"

#include "lines/line_passes.h"
#include "lines/line_watch.h"

uint8_t qp_lines_seen[1 << QP_SEEN_BITS];

#if PY_VERSION_HEX >= 0x030C0000

#include <string.h>

#include "memory/region.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/recording.h"
#include "stacks/code_lines.h"
#include "stacks/frames.h"
#include "stacks/greenlets.h"
#include "stacks/library_entry.h"
#include "sums/line_times.h"

enum {
    FRAMES = 250,      /* maximum number of frames searched for the program's own code */
    SHARE = 200,       /* watches may take 1/SHARE of the time since the recording began */
    FREE_NS = 2000000, /* watches may take this time in addition */
    LIBRARY_LOOP = 4,  /* with this many executions of a statement in one pass, a library runs a
                        * loop */
    SUBMISSIONS = 16,  /* 1 of this many submissions is sampled */
    PATHS = 256,       /* slots for call paths of submissions; several paths may share a slot */
    ENOUGH = 5,        /* number of timed passes that is enough; the longest does not count */
    AGAIN = 32,        /* maximum number of executions considered in addition, while a line has
                        * fewer than ENOUGH passes */
    HALVED = 8         /* with this many passes, the sums of a row are halved before a new watch */
};

/* A watch ends after this many sampled executions without a new pass: IDLE in other lines while no
 * pass of another thread is in progress; ELSEWHERE otherwise, as in a pass that does not end. */
enum { IDLE = 16, ELSEWHERE = 64 };

/* When a line is watched again: after twice as many sampled executions as before, because a pass
 * may take longer later in the run. `hits` counts these executions, `due` starts the next watch. */
typedef struct {
    uint32_t hits;
    uint32_t due;
    uint32_t again;  /* see consider_next_execution */
    bool in_library; /* a library executes the statement in the library's own loop */
} schedule;

static struct {
    bool is_refused;      /* another tool uses sys.monitoring */
    uint64_t since_ticks; /* when watches were first possible */
    uint32_t plain_path;  /* the last call path without a library, checked first because a loop
                           * repeats one path */
    qp_key watched;       /* the execution with which the last watch has begun */
    schedule rows[QP_LINE_TIMES];
    schedule submissions[PATHS];
} choice;

/* The program's own line that executes a statement. */
typedef struct {
    PyCodeObject *code; /* borrowed: a frame runs it; NULL if the program calls the driver itself */
    const void *frame;
    int instruction;
    bool has_library; /* a library is between the line and the driver */
    qp_libraries libraries;
} user_line;

static bool search_frame(void *context, PyCodeObject *code, PyObject *globals, int instruction)
{
    user_line *found = context;
    qp_code_owner owner;
    if (!qp_code_find_owner(code, globals, &owner) || owner == QP_CODE_IGNORED) {
        return true;
    }
    if (owner == QP_CODE_LIBRARY) {
        found->has_library = true;
        qp_libraries_add(&found->libraries, globals);
    }
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
        is_found = search_frame(&found, qp_frame_code(frame), qp_frame_globals(frame),
                                qp_frame_instruction(frame));
        if (is_found) {
            found.frame = frame;
        } else {
            frame = qp_frame_outer(frame);
        }
    }
    qp_frame_release(frame);
    if (!is_found && !frame && qp_greenlets_are_loaded()) {
        qp_greenlets_visit(search_frame, &found);
    }
    return found;
}

/* Finds the lines of the expression that a frame runs. Returns false if the lines are unknown. */
static bool find_expression_lines(const user_line *line, int *first, int *last)
{
    int first_column, last_column;
    return line->instruction >= 0 &&
           PyCode_Addr2Location(line->code, line->instruction, first, &first_column, last,
                                &last_column) &&
           *first > 0;
}

/* Counts a sampled execution. Returns whether the next watch of the line is due. */
static bool is_watch_due(schedule *one)
{
    if (++one->hits < one->due) {
        return false;
    }
    one->due = 2 * one->hits;
    return true;
}

static schedule *schedule_of(const qp_line_time_row *row)
{
    return &choice.rows[row - (qp_line_time_row *)qp_first_row(QP_LINE_TIME_ROWS)];
}

/* Considers the next execution of a statement and path as well, if its line was timed in few
 * passes. */
static void consider_next_execution(const qp_key *key)
{
    qp_line_time_row *row = qp_line_times_row(key);
    if (row && row->passes < ENOUGH && schedule_of(row)->again < AGAIN) {
        schedule_of(row)->again++;
        *qp_line_seen_flag(key->statement, key->path) = 0;
    }
}

/* Returns whether a sampled execution belongs to the pass in progress, and not to a line of a
 * function that the watched line calls. */
static bool is_in_pass(const qp_thread *thread, const PyCodeObject *code)
{
    return thread->tstate == qp_watched_line.tstate && qp_watched_line.is_inside &&
           (qp_watched_line.is_function || code == qp_watched_line.code);
}

/* Counts a sampled execution. Returns whether the watched line seems not to run any more. */
static bool is_idle(const qp_thread *thread, const PyCodeObject *code)
{
    bool is_here = thread->tstate == qp_watched_line.tstate || !qp_watched_line.is_inside;
    bool is_outside = is_here && !is_in_pass(thread, code);
    qp_watched_line.since_pass += is_outside;
    qp_watched_line.elsewhere += !is_outside;
    return qp_watched_line.since_pass >= IDLE || qp_watched_line.elsewhere >= ELSEWHERE;
}

/* Returns whether the watches have used up their share of the time. */
static bool is_over_budget(uint64_t now)
{
    if (!choice.since_ticks) {
        choice.since_ticks = now;
    }
    int64_t elapsed_ns = qp_ticks_to_ns(qp_elapsed_ticks(choice.since_ticks, now));
    return qp_watched_line.spent_ns > FREE_NS + elapsed_ns / SHARE;
}

/* Halves the sums of a row, so that each watch counts as much as all earlier watches together. */
static void halve_sums(qp_line_time_row *row)
{
    if (row->passes >= HALVED) {
        row->passes /= 2;
        row->executions /= 2;
        row->others /= 2;
        row->ns /= 2;
        row->loop_ns = row->loop_rows > 1 ? row->loop_ns / 2 : 0;
        row->loop_rows /= 2;
    }
}

static void watch_function(const qp_thread *thread, uint32_t path, qp_line_time_row *row,
                           schedule *own, uint64_t now)
{
    PyCodeObject *entry = qp_library_entry(thread->tstate);
    if (entry && is_watch_due(own)) {
        const qp_libraries none = {0}; /* a watched function gets no events for its calls */
        halve_sums(row);
        choice.is_refused = !qp_line_watch_begin(entry, 0, 0, path, NULL, &none, thread, now);
    }
}

static void watch_line(const user_line *line, const qp_thread *thread, const qp_key *key,
                       qp_line_time_row *row, schedule *own, uint64_t from_ticks)
{
    int first, last;
    if (!find_expression_lines(line, &first, &last) || !is_watch_due(own)) {
        return;
    }
    halve_sums(row);
    choice.watched = *key;
    uint32_t recording = qp_recording;
    choice.is_refused = !qp_line_watch_begin(line->code, first, last, key->path, line->frame,
                                             &line->libraries, thread, from_ticks);
    bool is_begun = recording == qp_recording && qp_watched_line.code == line->code;
    if (is_begun && line->frame && qp_watched_line.frame == line->frame) {
        qp_line_add_first_execution(key, from_ticks);
    }
}

/* Returns whether to watch a line at once, because it may be executed only once. False while a pass
 * of another thread is in progress. */
static bool is_worth_watching(const qp_thread *thread, const PyCodeObject *code,
                              const schedule *own)
{
    bool is_here = thread->tstate == qp_watched_line.tstate || !qp_watched_line.is_inside;
    return code && !own->hits && is_here && !is_in_pass(thread, code);
}

/* Returns whether to watch a line next, because it was timed in too few passes, and the watched
 * line was timed in enough. */
static bool is_timed_too_little(const qp_thread *thread, const PyCodeObject *code,
                                const qp_line_time_row *row)
{
    bool is_here = thread->tstate == qp_watched_line.tstate || !qp_watched_line.is_inside;
    return row->passes < ENOUGH && qp_watched_line.passes >= ENOUGH && is_here &&
           !is_in_pass(thread, code);
}

/* Returns whether the watch in progress continues. */
static bool watch_continues(const qp_thread *thread, const qp_key *key, const PyCodeObject *code,
                            const qp_line_time_row *row, schedule *own)
{
    if (!qp_watched_line.code) {
        return false;
    }
    bool is_inside = is_in_pass(thread, code);
    if (is_inside && !qp_watched_line.is_function &&
        qp_line_passes_execution_count(key) >= LIBRARY_LOOP) {
        own->in_library = true;
        return false;
    }
    return !is_idle(thread, code) && !is_worth_watching(thread, code, own) &&
           !is_timed_too_little(thread, code, row);
}

/* Returns whether a line can be watched now, or the watch in progress can continue. */
static bool may_watch(const qp_thread *thread, uint64_t now)
{
    bool is_traced = thread->tstate->c_tracefunc || thread->tstate->c_profilefunc;
    return !choice.is_refused && !is_traced && qp_frames_are_direct() &&
           (qp_watched_line.code || !is_over_budget(now));
}

QP_COLD void qp_line_consider_watch(const qp_thread *thread, const qp_key *key, uint64_t from_ticks)
{
    bool is_plain = key->path == choice.plain_path && !qp_watched_line.code;
    if (is_plain || !may_watch(thread, from_ticks)) {
        return;
    }
    user_line line = find_line(thread->tstate);
    qp_line_time_row *row = line.code ? qp_line_times_row(key) : NULL;
    if (!row) {
        choice.plain_path = line.code ? choice.plain_path : key->path;
        if (qp_watched_line.code && is_idle(thread, NULL)) {
            qp_line_watch_stop();
        }
        return;
    }
    schedule *own = schedule_of(row);
    bool was_in_library = own->in_library;
    if (watch_continues(thread, key, line.code, row, own)) {
        if (!is_in_pass(thread, line.code)) {
            consider_next_execution(key);
        }
        return;
    }
    uint32_t recording = qp_recording;
    bool is_cut_short = qp_watched_line.code && qp_watched_line.passes < ENOUGH;
    qp_line_watch_stop();
    if (recording != qp_recording) { /* an audit hook of the program has ended the recording */
        return;
    }
    if (is_cut_short) {
        consider_next_execution(&choice.watched);
    }
    own->in_library = own->in_library || 2 * row->executions > 3 * row->passes;
    if (own->in_library && !was_in_library) {
        row->passes = row->executions = row->others = row->ns = 0;
        own->due = 0;
    }
    if (is_over_budget(from_ticks)) {
        return;
    }
    if (own->in_library) {
        watch_function(thread, key->path, row, own, from_ticks);
    } else {
        watch_line(&line, thread, key, row, own, from_ticks);
    }
}

static QP_COLD void consider_submission(const qp_thread *thread, uint32_t path)
{
    uint64_t now = qp_clock_ticks();
    if (!may_watch(thread, now)) {
        return;
    }
    user_line line = find_line(thread->tstate);
    schedule *own = &choice.submissions[path % PATHS];
    if (qp_watched_line.code && !is_idle(thread, line.code) &&
        !is_worth_watching(thread, line.code, own)) {
        return;
    }
    uint32_t recording = qp_recording;
    qp_line_watch_stop();
    int first, last;
    if (recording == qp_recording && line.code && !is_over_budget(now) &&
        find_expression_lines(&line, &first, &last) && is_watch_due(own)) {
        choice.is_refused = !qp_line_watch_begin(line.code, first, last, path, line.frame,
                                                 &line.libraries, thread, now);
    }
}

uint64_t qp_line_consider_submission(qp_thread *thread, uint32_t path)
{
    if (qp_thread_random(thread) % SUBMISSIONS == 0 || qp_line_is_new(0, path)) {
        consider_submission(thread, path);
    }
    bool is_inside = qp_watched_line.is_inside && thread->tstate == qp_watched_line.tstate &&
                     qp_frame_is_running(thread->tstate, qp_watched_line.frame);
    return is_inside ? qp_watched_line.serial : 0;
}

void qp_line_choice_clear(void)
{
    qp_line_watch_stop();
    qp_watched_line.spent_ns = 0;
    if (choice.since_ticks) { /* otherwise the tables are unused, and a fork would copy their
                               * pages for nothing */
        memset(&choice, 0, sizeof choice);
        memset(qp_lines_seen, 0, sizeof qp_lines_seen);
    }
}

#else

void qp_line_consider_watch(const qp_thread *thread, const qp_key *key, uint64_t from_ticks)
{
    (void)thread, (void)key, (void)from_ticks;
}

uint64_t qp_line_consider_submission(qp_thread *thread, uint32_t path)
{
    (void)thread, (void)path;
    return 0;
}

void qp_line_choice_clear(void) {}

#endif

void qp_line_choice_after_fork(void)
{
    qp_watched_line.is_changing = false; /* another thread of the parent was changing the watch */
    qp_line_passes_clear();              /* the passes belong to the parent, like the rows */
    qp_line_choice_clear();
}
