#include "stacks/call_paths.h"

#include <string.h>

#include "memory/region.h"
#include "runtime/compiler.h"
#include "stacks/code_lines.h"
#include "stacks/frames.h"
#include "stacks/greenlets.h"
#include "stacks/submitter.h"
#include "stacks/task_creators.h"

enum {
    STACK_DEPTH = 100, /* frames kept of one stack */
    SEARCH_DEPTH = 250 /* frames searched for the program's own */
};

enum { WALKS = 128, WALK_WAYS = 2, WALK_MARKS = 20 };

/* The paths of frames that were walked before. */
typedef struct {
    qp_frame_mark marks[WALK_MARKS];
    int marked; /* 0: nothing is known */
    uint32_t
        submitter; /* the call path of the submitter of the work, or of the creator of the task */
    uint32_t path;
    bool ours;
} known_walk;

static struct {
    known_walk walks[WALKS][WALK_WAYS]; /* by the innermost frames' positions; latest first */
    int frames;
} table;

void qp_call_path_clear(void)
{
    memset(table.walks, 0, sizeof table.walks);
}

void qp_call_path_configure(int frames)
{
    qp_call_path_clear();
    table.frames = frames < 1 ? 1 : frames > QP_PATH_FRAMES_MAX ? QP_PATH_FRAMES_MAX : frames;
}

typedef struct {
    PyCodeObject *code; /* borrowed: a frame runs it */
    int instruction;
} place;

/* A search for the innermost frames of the program's own code, outwards from frame to frame. */
typedef struct {
    uint32_t user[QP_PATH_FRAMES_MAX]; /* lines */
    place library[QP_PATH_FRAMES_MAX];
    uint32_t users, libraries;
    bool ours, full;
} search;

static bool has_all(const search *s)
{
    return s->users == (uint32_t)table.frames;
}

/* Visits a frame; true: the search is complete. */
static bool look_at(void *context, PyCodeObject *code, PyObject *globals, int instruction)
{
    search *s = context;
    qp_code_owner kind;
    if (!qp_code_find(code, globals, &kind)) {
        s->full = true;
    } else if (kind == QP_CODE_USER) {
        s->user[s->users++] = qp_line_of(code, instruction);
        return has_all(s);
    } else if (kind == QP_CODE_LIBRARY && s->libraries < (uint32_t)table.frames) {
        s->library[s->libraries++] = (place){code, instruction};
    } else if (kind == QP_CODE_IGNORED && !s->users) {
        s->ours = false;
        return true;
    }
    return false;
}

/* Continues with the path of the submitter. */
static void look_behind(search *s, uint32_t submitter)
{
    const qp_line_row *lines = qp_rows(QP_LINE_ROWS);
    for (uint32_t at = submitter; at > QP_PATH_OTHER && s->ours && !has_all(s);
         at = qp_stack_outer(at)) {
        if (lines[qp_stack_line(at)].kind == QP_CODE_USER) {
            s->user[s->users++] = qp_stack_line(at);
        }
    }
}

/* Without a frame of the program, the library's own frames are used. */
static uint32_t path_of(const search *s, uint32_t submitter)
{
    uint32_t lines[QP_PATH_FRAMES_MAX];
    if (s->users) {
        return qp_stack_of(s->user, s->users);
    }
    if (s->full) {
        return QP_PATH_OTHER;
    }
    uint32_t count = 0;
    while (count < s->libraries) {
        const place *at = &s->library[count];
        lines[count++] = qp_line_of(at->code, at->instruction);
    }
    for (uint32_t at = submitter; at > QP_PATH_OTHER && count < (uint32_t)table.frames;
         at = qp_stack_outer(at)) {
        lines[count++] = qp_stack_line(at);
    }
    return qp_stack_of(lines, count);
}

static QP_COLD void find_path(PyThreadState *tstate, known_walk *walk)
{
    bool is_task = walk->submitter != QP_PATH_NONE && !qp_submitter_now();
    search s = {.ours = true};
    qp_frame *frame = qp_frame_running(tstate);
    bool enough = false;
    for (int depth = 0; frame && !enough && depth < SEARCH_DEPTH; depth++) {
        enough = look_at(&s, qp_frame_code(frame), qp_frame_globals(frame),
                         qp_frame_instruction(frame)) ||
                 (is_task && qp_task_is_boundary(qp_frame_code(frame)));
        frame = enough ? frame : qp_frame_outer(frame);
    }
    bool has_parents = !enough && !frame && qp_greenlets_visit(look_at, &s);
    look_behind(&s, walk->submitter);
    /* A code object that no table keeps alive may be freed, and its address reused; and equal
     * frames may have different parents. */
    bool marks = !s.full && !has_parents;
    walk->path = path_of(&s, walk->submitter);
    walk->marked = marks ? qp_frames_mark(tstate, frame, walk->marks, WALK_MARKS) : 0;
    walk->ours = s.ours;
    qp_frame_release(frame);
}

static inline bool leads_there(const known_walk *walk, PyThreadState *tstate, uint32_t submitter)
{
    return walk->submitter == submitter && qp_frames_match(tstate, walk->marks, walk->marked);
}

/* A walk that is not the latest from these frames: the one before, or a new one. */
static QP_COLD void find_other(PyThreadState *tstate, uint32_t submitter, known_walk *ways)
{
    if (leads_there(&ways[1], tstate, submitter)) {
        known_walk found = ways[1];
        ways[1] = ways[0];
        ways[0] = found;
        return;
    }
    ways[1] = ways[0];
    ways[0].submitter = submitter;
    find_path(tstate, &ways[0]);
}

bool qp_call_path_find(PyThreadState *tstate, uint32_t *path)
{
    uint32_t submitter = qp_path_behind();
    known_walk *ways = table.walks[(qp_frames_hash(tstate) + submitter) & (WALKS - 1)];
    if (!leads_there(&ways[0], tstate, submitter)) {
        find_other(tstate, submitter, ways);
    }
    *path = ways[0].path;
    return ways[0].ours;
}

uint32_t qp_stack_find(PyThreadState *tstate)
{
    uint32_t lines[STACK_DEPTH];
    uint32_t count = 0;
    qp_frame *frame = qp_frame_running(tstate);
    while (frame && count < STACK_DEPTH) {
        PyCodeObject *code = qp_frame_code(frame);
        qp_code_owner kind;
        if (qp_code_find(code, qp_frame_globals(frame), &kind) && kind != QP_CODE_SELF) {
            lines[count++] = qp_line_of(code, qp_frame_instruction(frame));
        }
        frame = qp_frame_outer(frame);
    }
    qp_frame_release(frame);
    for (uint32_t at = qp_path_behind(); at > QP_PATH_OTHER && count < STACK_DEPTH;
         at = qp_stack_outer(at)) {
        lines[count++] = qp_stack_line(at);
    }
    return qp_stack_of(lines, count);
}
