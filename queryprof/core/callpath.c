#include "callpath.h"

#include <string.h>

#include "allocation.h"
#include "code_classes.h"
#include "compiler.h"
#include "frames.h"
#include "greenlets.h"
#include "origin.h"
#include "task_makers.h"
#include "threads.h"

enum {
    CODES = 16384, /* code objects known */
    CODE_SLOTS = 2 * CODES,
    PATHS = 16384, /* different call paths */
    PATH_SLOTS = 2 * PATHS,
    STACK_FRAMES = 65536, /* of all stacks of one interval together */
    STACKS = 4096,
    STACK_SLOTS = 2 * STACKS,
    STACK_DEPTH = 100, /* frames kept of one stack */
    SEARCH_DEPTH = 250 /* frames looked at for the program's own */
};

typedef struct {
    PyCodeObject *code; /* owned by the table of codes */
    int instruction;    /* byte offset, as PyFrame_GetLasti gives it */
} place;

typedef struct {
    PyCodeObject *code; /* owned; NULL: empty slot */
    uint8_t kind;
    bool is_guess; /* without its globals */
} known_code;

typedef struct {
    uint64_t hash;
    uint32_t frames;
    uint32_t alias; /* the first path with the same lines: one call may show two instructions */
    place at[QP_PATH_FRAMES_MAX];
    int lines[QP_PATH_FRAMES_MAX];
} call_path;

typedef struct {
    uint64_t hash;
    uint32_t first;
    uint32_t frames;
} stack;

enum { RECENT_CODES = 128, WALKS = 128, WALK_WAYS = 2, WALK_MARKS = 20 };

/* Where the same frames led before. */
typedef struct {
    qp_frame_mark marks[WALK_MARKS];
    int marked;      /* 0: nothing is known */
    uint32_t origin; /* the path in the thread that handed the work over, or that made the task */
    uint32_t path;
    bool ours;
} known_walk;

static struct {
    known_code recent[RECENT_CODES];    /* borrowed from `codes`, by address: found at once */
    known_walk walks[WALKS][WALK_WAYS]; /* by the innermost frames' positions; latest first */
    known_code *codes;                  /* open addressing by address */
    uint32_t code_count;
    call_path *paths;
    uint32_t path_count;
    uint32_t path_base; /* number of paths[0] */
    uint32_t *path_index;
    uint32_t *line_index; /* of paths by code and lines */
    place *stack_places;
    uint32_t stack_places_used;
    stack *stacks;
    uint32_t stack_count;
    uint32_t *stack_index;
    uint32_t stack_epoch;
    int frames;
} table;

static inline uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio (Knuth, TAOCP 6.4) */
    return hash ^ (hash >> 32);
}

static uint64_t hash_places(const place *at, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        hash = mix(hash, (uintptr_t)at[i].code + ((uint64_t)(unsigned)at[i].instruction << 48));
    }
    return hash;
}

static bool same_places(const place *a, const place *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].code != b[i].code || a[i].instruction != b[i].instruction) {
            return false;
        }
    }
    return true;
}

bool qp_callpath_start(void)
{
    table.codes = qp_allocate(CODE_SLOTS, sizeof *table.codes);
    table.paths = qp_allocate(PATHS, sizeof *table.paths);
    table.path_index = qp_allocate(PATH_SLOTS, sizeof *table.path_index);
    table.line_index = qp_allocate(PATH_SLOTS, sizeof *table.line_index);
    table.stack_places = qp_allocate(STACK_FRAMES, sizeof *table.stack_places);
    table.stacks = qp_allocate(STACKS, sizeof *table.stacks);
    table.stack_index = qp_allocate(STACK_SLOTS, sizeof *table.stack_index);
    if (!table.codes || !table.paths || !table.path_index || !table.line_index ||
        !table.stack_places || !table.stacks || !table.stack_index) {
        qp_callpath_stop();
        return false;
    }
    table.path_base = QP_PATH_OTHER + 1;
    table.frames = 3;
    return true;
}

static void forget_codes(void)
{
    memset(table.recent, 0, sizeof table.recent);
    memset(table.walks, 0, sizeof table.walks);
    for (uint32_t i = 0; table.codes && i < CODE_SLOTS; i++) {
        Py_CLEAR(table.codes[i].code);
    }
    table.code_count = 0;
}

void qp_callpath_stop(void)
{
    forget_codes();
    qp_code_classes_forget();
    qp_release(table.codes);
    qp_release(table.paths);
    qp_release(table.path_index);
    qp_release(table.line_index);
    qp_release(table.stack_places);
    qp_release(table.stacks);
    qp_release(table.stack_index);
    uint32_t epoch = table.stack_epoch;
    memset(&table, 0, sizeof table);
    table.stack_epoch = epoch + 1;
}

void qp_callpath_configure(int frames)
{
    memset(table.walks, 0, sizeof table.walks);
    table.frames = frames < 1 ? 1 : frames > QP_PATH_FRAMES_MAX ? QP_PATH_FRAMES_MAX : frames;
}

static const known_code *find_code_in_table(PyCodeObject *code, PyObject *globals)
{
    uint32_t slot = (uint32_t)mix(0, (uintptr_t)code) & (CODE_SLOTS - 1);
    for (; table.codes[slot].code; slot = (slot + 1) & (CODE_SLOTS - 1)) {
        known_code *known = &table.codes[slot];
        if (known->code == code) {
            if (known->is_guess && globals) {
                known->kind = (uint8_t)qp_code_classify(code, globals);
                known->is_guess = false;
            }
            return known;
        }
    }
    if (table.code_count >= CODES) {
        return NULL;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    table.codes[slot].kind = (uint8_t)qp_code_classify(code, globals);
    table.codes[slot].code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    table.codes[slot].is_guess = !globals && qp_code_is_generated(code);
    table.code_count++;
    PyErr_Restore(type, value, traceback);
    return &table.codes[slot];
}

/* The cache's entry for a code object, or NULL when the cache is full. */
static inline const known_code *find_code(PyCodeObject *code, PyObject *globals)
{
    known_code *recent = &table.recent[((uintptr_t)code >> 5) & (RECENT_CODES - 1)];
    if (recent->code != code || recent->is_guess) {
        const known_code *known = find_code_in_table(code, globals);
        if (!known) {
            return NULL;
        }
        *recent = *known;
    }
    return recent;
}

static bool same_lines(const call_path *a, const call_path *b)
{
    for (uint32_t i = 0; i < a->frames; i++) {
        if (a->at[i].code != b->at[i].code || a->lines[i] != b->lines[i]) {
            return false;
        }
    }
    return a->frames == b->frames;
}

/* The first path with the same lines as a new one, which may be that itself. */
static uint32_t find_alias(uint32_t number)
{
    call_path *added = &table.paths[number];
    uint64_t hash = added->frames;
    for (uint32_t i = 0; i < added->frames; i++) {
        added->lines[i] = PyCode_Addr2Line(added->at[i].code, added->at[i].instruction);
        hash =
            mix(hash, (uintptr_t)added->at[i].code + ((uint64_t)(unsigned)added->lines[i] << 48));
    }
    uint32_t slot = (uint32_t)(hash & (PATH_SLOTS - 1));
    for (; table.line_index[slot]; slot = (slot + 1) & (PATH_SLOTS - 1)) {
        uint32_t first = table.line_index[slot] - 1;
        if (same_lines(&table.paths[first], added)) {
            return first;
        }
    }
    table.line_index[slot] = number + 1;
    return number;
}

static uint32_t intern_path(const place *at, uint32_t count)
{
    if (!count) {
        return QP_PATH_NONE;
    }
    uint64_t hash = hash_places(at, count);
    uint32_t slot = (uint32_t)(hash & (PATH_SLOTS - 1));
    for (; table.path_index[slot]; slot = (slot + 1) & (PATH_SLOTS - 1)) {
        uint32_t number = table.path_index[slot] - 1;
        call_path *known = &table.paths[number];
        if (known->hash == hash && known->frames == count && same_places(known->at, at, count)) {
            return table.path_base + known->alias;
        }
    }
    if (table.path_count >= PATHS) {
        return QP_PATH_OTHER;
    }
    call_path *added = &table.paths[table.path_count];
    added->hash = hash;
    added->frames = count;
    memcpy(added->at, at, count * sizeof *at);
    added->alias = find_alias(table.path_count);
    table.path_index[slot] = ++table.path_count;
    return table.path_base + added->alias;
}

/* A look for the innermost frames of the program's own code, from frame to frame outwards. */
typedef struct {
    place user[QP_PATH_FRAMES_MAX], library[QP_PATH_FRAMES_MAX];
    uint32_t users, libraries;
    bool ours, full;
} search;

/* Looks at a frame; true: enough is known. */
static bool look_at(void *context, PyCodeObject *code, PyObject *globals, int instruction)
{
    search *s = context;
    const known_code *known = find_code(code, globals);
    if (!known) {
        s->full = true;
    } else if (known->kind == QP_CODE_USER) {
        s->user[s->users++] = (place){code, instruction};
        return s->users == (uint32_t)table.frames;
    } else if (known->kind == QP_CODE_LIBRARY && s->libraries < (uint32_t)table.frames) {
        s->library[s->libraries++] = (place){code, instruction};
    } else if (known->kind == QP_CODE_IGNORED && !s->users) {
        s->ours = false;
        return true;
    }
    return false;
}

/* The frames of a path from elsewhere, or NULL: there are none, or they were forgotten. */
static const call_path *frames_of(uint32_t path)
{
    bool known = path >= table.path_base && path > QP_PATH_OTHER &&
                 path - table.path_base < table.path_count;
    return known ? &table.paths[path - table.path_base] : NULL;
}

static QP_COLD void find_path(PyThreadState *tstate, known_walk *walk)
{
    bool is_task = walk->origin != QP_PATH_NONE && !qp_origin_now();
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
    const call_path *origin = frames_of(walk->origin);
    for (uint32_t i = 0; origin && s.ours && i < origin->frames; i++) {
        if (s.users < (uint32_t)table.frames) {
            look_at(&s, origin->at[i].code, NULL, origin->at[i].instruction);
        }
    }
    /* A code object that no table keeps alive may go, and its address come to mean another; and
     * equal frames may have different parents. */
    bool marks = !s.full && !has_parents;
    walk->marked = marks ? qp_frames_mark(tstate, frame, walk->marks, WALK_MARKS) : 0;
    qp_frame_release(frame);
    walk->ours = s.ours;
    if (s.full && !s.users) {
        walk->path = QP_PATH_OTHER;
    } else {
        /* Without a frame of the program, the library's own frames are better than nothing. */
        walk->path = s.users ? intern_path(s.user, s.users) : intern_path(s.library, s.libraries);
    }
}

static inline bool leads_there(const known_walk *walk, PyThreadState *tstate, uint32_t origin)
{
    return walk->origin == origin && qp_frames_match(tstate, walk->marks, walk->marked);
}

/* A walk that is not the latest from these frames: the one before, or a new one. */
static QP_COLD void find_other(PyThreadState *tstate, uint32_t origin, known_walk *ways)
{
    if (leads_there(&ways[1], tstate, origin)) {
        known_walk found = ways[1];
        ways[1] = ways[0];
        ways[0] = found;
        return;
    }
    ways[1] = ways[0];
    ways[0].origin = origin;
    find_path(tstate, &ways[0]);
}

bool qp_callpath_find(PyThreadState *tstate, uint32_t *path)
{
    uint32_t origin = qp_path_behind();
    known_walk *ways = table.walks[(qp_frames_hash(tstate) + origin) & (WALKS - 1)];
    if (!leads_there(&ways[0], tstate, origin)) {
        find_other(tstate, origin, ways);
    }
    *path = ways[0].path;
    return ways[0].ours;
}

qp_code_class qp_code_kind(PyCodeObject *code)
{
    /* What has no file is generated, or the main program's. */
    PyObject *main = qp_code_is_generated(code) ? PyImport_AddModule("__main__") : NULL;
    const known_code *known = find_code(code, main ? PyModule_GetDict(main) : NULL);
    PyErr_Clear();
    return known ? (qp_code_class)known->kind : QP_CODE_LIBRARY;
}

uint32_t qp_stack_find(PyThreadState *tstate)
{
    if (table.stack_count >= STACKS || table.stack_places_used + STACK_DEPTH > STACK_FRAMES) {
        return QP_STACK_NONE;
    }
    place *at = table.stack_places + table.stack_places_used;
    uint32_t frames = 0;
    qp_frame *frame = qp_frame_running(tstate);
    while (frame && frames < STACK_DEPTH) {
        PyCodeObject *code = qp_frame_code(frame);
        const known_code *known = find_code(code, qp_frame_globals(frame));
        if (known && known->kind != QP_CODE_SELF) {
            at[frames++] = (place){code, qp_frame_instruction(frame)};
        }
        frame = qp_frame_outer(frame);
    }
    qp_frame_release(frame);
    const call_path *origin = frames_of(qp_path_behind());
    for (uint32_t i = 0; origin && i < origin->frames && frames < STACK_DEPTH; i++) {
        at[frames++] = origin->at[i];
    }
    uint64_t hash = hash_places(at, frames);
    uint32_t slot = (uint32_t)(hash & (STACK_SLOTS - 1));
    for (; table.stack_index[slot]; slot = (slot + 1) & (STACK_SLOTS - 1)) {
        const stack *known = &table.stacks[table.stack_index[slot] - 1];
        if (known->hash == hash && known->frames == frames &&
            same_places(table.stack_places + known->first, at, frames)) {
            return table.stack_index[slot];
        }
    }
    table.stacks[table.stack_count] =
        (stack){.hash = hash, .first = table.stack_places_used, .frames = frames};
    table.stack_places_used += frames;
    table.stack_index[slot] = ++table.stack_count;
    return table.stack_count;
}

uint32_t qp_stacks_epoch(void)
{
    return table.stack_epoch;
}

void qp_stacks_forget(void)
{
    table.stack_epoch++;
    for (uint32_t i = 0; i < table.stack_count; i++) { /* mostly few of many slots are in use */
        uint32_t slot = (uint32_t)(table.stacks[i].hash & (STACK_SLOTS - 1));
        while (table.stack_index[slot] != i + 1) {
            slot = (slot + 1) & (STACK_SLOTS - 1);
        }
        table.stack_index[slot] = 0;
    }
    table.stack_count = 0;
    table.stack_places_used = 0;
}

bool qp_callpath_nearly_full(void)
{
    return table.path_count > PATHS - PATHS / 4 || table.code_count > CODES - CODES / 4;
}

void qp_callpath_forget(void)
{
    qp_stacks_forget();
    memset(table.path_index, 0, PATH_SLOTS * sizeof *table.path_index);
    memset(table.line_index, 0, PATH_SLOTS * sizeof *table.line_index);
    table.path_base += table.path_count;
    table.path_count = 0;
    forget_codes();
}

/* One (function, file, line, kind) frame; NULL with an exception. */
static PyObject *describe(const place *at)
{
    const known_code *known = find_code(at->code, NULL);
    int line = PyCode_Addr2Line(at->code, at->instruction);
    return Py_BuildValue("(OOii)", at->code->co_qualname, at->code->co_filename,
                         line > 0 ? line : 0, known ? known->kind : QP_CODE_LIBRARY);
}

static PyObject *describe_all(const place *at, uint32_t count)
{
    PyObject *frames = PyTuple_New(count);
    for (uint32_t i = 0; frames && i < count; i++) {
        PyObject *frame = describe(&at[i]);
        if (!frame) {
            Py_CLEAR(frames);
            break;
        }
        PyTuple_SET_ITEM(frames, i, frame);
    }
    return frames;
}

PyObject *qp_path_frames(uint32_t path)
{
    if (path == QP_PATH_NONE) {
        return PyTuple_New(0);
    }
    if (path == QP_PATH_OTHER) {
        return Py_BuildValue("((ssii))", "(other)", "", 0, QP_CODE_LIBRARY);
    }
    if (path < table.path_base || path - table.path_base >= table.path_count) {
        return PyErr_Format(PyExc_IndexError, "no call path %u", (unsigned)path);
    }
    const call_path *known = &table.paths[path - table.path_base];
    return describe_all(known->at, known->frames);
}

PyObject *qp_stack_frames(uint32_t number)
{
    if (number == QP_STACK_NONE || number > table.stack_count) {
        return PyErr_Format(PyExc_IndexError, "no stack %u", (unsigned)number);
    }
    const stack *known = &table.stacks[number - 1];
    return describe_all(table.stack_places + known->first, known->frames);
}

uint32_t qp_path_checked(uint32_t path)
{
    return path > QP_PATH_OTHER && path < table.path_base ? QP_PATH_OTHER : path;
}
