#include "stacks/call_paths.h"

#include <string.h>

#include "memory/region.h"
#include "runtime/allocation.h"
#include "runtime/compiler.h"
#include "runtime/cpu_time.h"
#include "stacks/code_lines.h"
#include "stacks/frames.h"
#include "stacks/greenlets.h"
#include "stacks/submitter.h"
#include "stacks/task_creators.h"

enum {
    STACK_DEPTH = 100, /* maximum number of frames in a stack */
    SEARCH_DEPTH = 250 /* maximum number of frames searched for the program's own code */
};

enum {
    WALKS = 131072, /* slots for call paths of frames that were walked before; at most half of the
                     * slots are used */
    TRAIL = 3,      /* minimum number of frames that are compared */
    DEPTHS = 4096   /* slots, by a hash of these frames, for the number of further frames that
                     * must be compared */
};

/* The call path of frames that were walked before. */
typedef struct {
    uint64_t identity; /* identity of the trail (frames.h); 0 if free */
    uint32_t path;
    bool ours;
} known_walk;

static struct {
    known_walk *walks; /* hash table by identity: open addressing, linear probing */
    uint32_t walk_count;
    uint8_t depths[DEPTHS];
    int frames;
} table;

bool qp_call_paths_start(void)
{
    table.walks = qp_allocate(WALKS, sizeof *table.walks);
    return table.walks != NULL;
}

void qp_call_paths_stop(void)
{
    qp_free(table.walks);
    table.walks = NULL;
    table.walk_count = 0;
    memset(table.depths, 0, sizeof table.depths);
}

void qp_call_paths_clear(void)
{
    if (table.walk_count) {
        memset(table.walks, 0, WALKS * sizeof *table.walks);
        table.walk_count = 0;
    }
}

void qp_call_paths_configure(int frames)
{
    qp_call_paths_clear();
    table.frames = frames < 1 ? 1 : frames > QP_PATH_FRAMES_MAX ? QP_PATH_FRAMES_MAX : frames;
}

typedef struct {
    PyCodeObject *code; /* borrowed: the frame that runs it keeps it alive */
    int instruction;
} place;

/* A search for the innermost frames of the program's own code. It goes outwards from frame to
 * frame. */
typedef struct {
    uint32_t user[QP_PATH_FRAMES_MAX]; /* lines */
    place library[QP_PATH_FRAMES_MAX];
    uint32_t users, libraries;
    bool ours, full;
} search;

static bool is_complete(const search *s)
{
    return s->users == (uint32_t)table.frames;
}

/* Visits a frame. Returns true if the search is complete. */
static bool search_frame(void *context, PyCodeObject *code, PyObject *globals, int instruction)
{
    search *s = context;
    qp_code_owner kind;
    if (!qp_code_find_owner(code, globals, &kind)) {
        s->full = true;
    } else if (kind == QP_CODE_USER) {
        s->user[s->users++] = qp_line_of_instruction(code, instruction);
        return is_complete(s);
    } else if (kind == QP_CODE_LIBRARY && s->libraries < (uint32_t)table.frames) {
        s->library[s->libraries++] = (place){code, instruction};
    } else if (kind == QP_CODE_IGNORED && !s->users) {
        s->ours = false;
        return true;
    }
    return false;
}

/* Continues the search along the submitter's call path. */
static void search_submitter(search *s, uint32_t submitter)
{
    const qp_line_row *lines = qp_first_row(QP_LINE_ROWS);
    for (uint32_t at = submitter; at > QP_PATH_OTHER && s->ours && !is_complete(s);
         at = qp_stack_outer(at)) {
        if (lines[qp_stack_innermost_line(at)].kind == QP_CODE_USER) {
            s->user[s->users++] = qp_stack_innermost_line(at);
        }
    }
}

/* Returns the call path that a search found. Without a frame of the program, the path consists of
 * the library's frames. */
static uint32_t found_path(const search *s, uint32_t submitter)
{
    uint32_t lines[QP_PATH_FRAMES_MAX];
    if (s->users) {
        return qp_stack_of_lines(s->user, s->users);
    }
    if (s->full) {
        return QP_PATH_OTHER;
    }
    uint32_t count = 0;
    while (count < s->libraries) {
        const place *at = &s->library[count];
        lines[count++] = qp_line_of_instruction(at->code, at->instruction);
    }
    for (uint32_t at = submitter; at > QP_PATH_OTHER && count < (uint32_t)table.frames;
         at = qp_stack_outer(at)) {
        lines[count++] = qp_stack_innermost_line(at);
    }
    return qp_stack_of_lines(lines, count);
}

/* Walks along the frames to find the call path. Returns the number of frames that a trail must have
 * to identify this path; 0 if no trail identifies it. */
static int search_frames(PyThreadState *tstate, uint32_t submitter, known_walk *found)
{
    bool is_task = submitter != QP_PATH_NONE && !qp_running_submitter();
    search s = {.ours = true};
    qp_frame *frame = qp_frame_running(tstate);
    bool enough = false;
    for (int depth = 0; frame && !enough && depth < SEARCH_DEPTH; depth++) {
        enough = search_frame(&s, qp_frame_code(frame), qp_frame_globals(frame),
                              qp_frame_instruction(frame)) ||
                 (is_task && qp_task_is_boundary(qp_frame_code(frame)));
        frame = enough ? frame : qp_frame_outer(frame);
    }
    bool has_parents = !enough && !frame && qp_greenlets_visit(search_frame, &s);
    search_submitter(&s, submitter);
    found->path = found_path(&s, submitter);
    found->ours = s.ours;
    /* No trail identifies the path if the table of code objects is full: a code object may be freed
     * and its address reused. The same applies if the frames may have parents, because equal frames
     * may have different parents in a greenlet, and none in a thread. */
    bool may_have_parents =
        has_parents || (!enough && !frame && !qp_thread_is_main() && qp_greenlets_are_loaded());
    int length = s.full || may_have_parents ? 0 : qp_frame_trail_length(tstate, frame);
    qp_frame_release(frame);
    return length;
}

/* Returns the slot of a trail, or the free slot for the trail. */
static inline known_walk *trail_slot(uint64_t identity)
{
    uint32_t slot = (uint32_t)identity & (WALKS - 1);
    while (table.walks[slot].identity && table.walks[slot].identity != identity) {
        slot = (slot + 1) & (WALKS - 1);
    }
    return &table.walks[slot];
}

/* Returns the trail of the thread's frames. The trail has as many frames as were needed for the
 * last stack that began with the same TRAIL frames. */
static inline qp_frame_trail running_trail(PyThreadState *tstate, uint32_t submitter,
                                           uint8_t **depth)
{
    qp_frame_trail trail = qp_frame_trail_begin(tstate, submitter);
    qp_frame_trail_extend(&trail, TRAIL);
    *depth = &table.depths[(trail.identity >> 32) & (DEPTHS - 1)];
    if (**depth) {
        qp_frame_trail_extend(&trail, **depth);
    }
    return trail;
}

/* Walks along frames whose trail is not known yet, and stores the result. */
static QP_COLD known_walk find_path(PyThreadState *tstate, uint32_t submitter)
{
    known_walk found;
    uint8_t *depth;
    int length = search_frames(tstate, submitter, &found);
    running_trail(tstate, submitter, &depth);
    if (length > TRAIL + *depth && length <= TRAIL + UINT8_MAX) {
        *depth = (uint8_t)(length - TRAIL);
    }
    found.identity = running_trail(tstate, submitter, &depth).identity;
    if (found.identity && length && length <= TRAIL + *depth) {
        if (table.walk_count == WALKS / 2) {
            qp_call_paths_clear();
        }
        known_walk *place = trail_slot(found.identity);
        table.walk_count += !place->identity;
        *place = found;
    }
    return found;
}

bool qp_call_path_find(PyThreadState *tstate, uint32_t *path)
{
    uint32_t submitter = qp_submitter_path();
    uint8_t *depth;
    uint64_t identity = running_trail(tstate, submitter, &depth).identity;
    const known_walk *known = trail_slot(identity);
    if (known->identity == identity && identity) {
        *path = known->path;
        return known->ours;
    }
    known_walk found = find_path(tstate, submitter);
    *path = found.path;
    return found.ours;
}

/* Returns the code of a thread's outermost frame; the pointer is only compared. NULL if there are
 * too many frames. Also NULL, unless `in_loop`, if one of the frames runs the loop's function for
 * callbacks, because these frames do not belong to a greenlet. */
static const PyCodeObject *outermost_code(PyThreadState *tstate, bool in_loop)
{
    const PyCodeObject *code = NULL;
    qp_frame *frame = qp_frame_running(tstate);
    for (int depth = 0; frame; depth++) {
        code = qp_frame_code(frame);
        bool is_deep = depth == SEARCH_DEPTH;
        if (is_deep || (!in_loop && qp_task_is_boundary(code))) {
            qp_frame_release(frame);
            return NULL;
        }
        frame = qp_frame_outer(frame);
    }
    return code;
}

void qp_call_path_note_for_task(PyThreadState *tstate, uint32_t path)
{
    if (path > QP_PATH_OTHER && qp_greenlets_are_loaded()) {
        qp_task_note_call_path(path, outermost_code(tstate, true));
    }
}

uint32_t qp_call_path_sample(PyThreadState *tstate, const qp_step *step)
{
    const qp_line_row *lines = qp_first_row(QP_LINE_ROWS);
    uint32_t path;
    qp_call_path_find(tstate, &path);
    if (path > QP_PATH_OTHER && lines[qp_stack_innermost_line(path)].kind != QP_CODE_USER) {
        uint32_t behind = qp_task_path_before_greenlet(step, outermost_code(tstate, false));
        return behind > QP_PATH_OTHER ? behind : path;
    }
    return path;
}

uint32_t qp_stack_find(PyThreadState *tstate)
{
    uint32_t lines[STACK_DEPTH];
    uint32_t count = 0;
    qp_frame *frame = qp_frame_running(tstate);
    while (frame && count < STACK_DEPTH) {
        PyCodeObject *code = qp_frame_code(frame);
        qp_code_owner kind;
        if (qp_code_find_owner(code, qp_frame_globals(frame), &kind) && kind != QP_CODE_SELF) {
            lines[count++] = qp_line_of_instruction(code, qp_frame_instruction(frame));
        }
        frame = qp_frame_outer(frame);
    }
    qp_frame_release(frame);
    for (uint32_t at = qp_submitter_stack(); at > QP_PATH_OTHER && count < STACK_DEPTH;
         at = qp_stack_outer(at)) {
        lines[count++] = qp_stack_innermost_line(at);
    }
    return qp_stack_of_lines(lines, count);
}

uint32_t qp_stack_find_for_submitter(PyThreadState *tstate, uint32_t path)
{
    if (path == QP_PATH_NONE) {
        return qp_stack_find(tstate); /* a path without a line does not identify the stack */
    }
    uint32_t *stack = qp_stack_of_submitter(path);
    if (*stack == QP_STACK_NONE) {
        *stack = qp_stack_find(tstate);
    }
    return *stack;
}
