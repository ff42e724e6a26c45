#include "counters/locks.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/index.h"
#include "threads/threads.h"

enum {
    FILES = 1024, /* open at once; of more, the locks are unknown */
    NEAR = 16,    /* places where a file may be */
    PATHS = 256,
    READ_NOTABLE_NS = 1000000000 /* a shorter read transaction is not kept */
};

typedef struct {
    bool is_held;
    qp_key key; /* of the call that took it */
    uint32_t recording;
    const qp_thread *thread; /* that took it; identity only */
    uint64_t start_ticks;
    int64_t database_ticks; /* of the thread then */
} held_lock;

typedef struct {
    const void *_Atomic file; /* NULL: free */
    uint32_t path;
    bool has_wal; /* its own lock is no read transaction: it is held for long */
    held_lock held[QP_LOCK_KINDS];
} locked_file;

static locked_file files[FILES + NEAR];

/* The paths of databases: never freed, for recordings that name them later. */
static char *_Atomic paths[PATHS];

static locked_file *first_place(const void *file)
{
    return &files[((uint64_t)(uintptr_t)file * QP_GOLDEN_RATIO >> 40) % FILES];
}

static locked_file *find(const void *file)
{
    locked_file *place = first_place(file);
    for (int i = 0; i < NEAR; i++) {
        if (atomic_load_explicit(&place[i].file, memory_order_relaxed) == file) {
            return &place[i];
        }
    }
    return NULL;
}

/* The number of a path; 0: there is no room. */
static uint32_t number_of(const char *path)
{
    char *own = NULL;
    for (uint32_t i = 1; path && i < PATHS; i++) {
        char *known = paths[i];
        if (!known) {
            own = own ? own : strdup(path);
            if (!own) {
                return 0;
            }
            if (atomic_compare_exchange_strong(&paths[i], &known, own)) {
                return i;
            }
        }
        if (!strcmp(known, path)) {
            free(own);
            return i;
        }
    }
    free(own);
    return 0;
}

void qp_locks_opened(const void *file, const char *path)
{
    uint32_t number = number_of(path);
    locked_file *place = first_place(file);
    for (int i = 0; number && i < NEAR; i++) {
        const void *none = NULL;
        if (atomic_compare_exchange_strong(&place[i].file, &none, file)) {
            place[i].path = number; /* it is read for this file alone, which is not in use yet */
            place[i].has_wal = false;
            memset(place[i].held, 0, sizeof place[i].held);
            return;
        }
    }
}

void qp_locks_closed(const void *file)
{
    locked_file *place = find(file);
    if (place) {
        place->file = NULL;
    }
}

uint32_t qp_locks_path_number(const void *file)
{
    const locked_file *place = find(file);
    return place ? place->path : 0;
}

const char *qp_locks_path(uint32_t number)
{
    const char *path = paths[number];
    return path ? path : "";
}

/* The time that a thread has spent in the driver's calls, the one in progress included. */
static int64_t database_ticks(const qp_thread *thread, const qp_active *call, uint64_t now)
{
    while (call->below) {
        call = call->below;
    }
    return thread->database_ticks + qp_clock_elapsed(call->start_ticks, now);
}

void qp_locks_in_wal(const void *file)
{
    locked_file *place = find(file);
    if (place && !place->has_wal) {
        place->has_wal = true;
        place->held[QP_READ_LOCK].is_held = false;
    }
}

bool qp_locks_has_wal(const void *file)
{
    const locked_file *place = find(file);
    return place && place->has_wal;
}

void qp_lock_taken(const void *file, qp_lock_kind kind, const qp_active *call)
{
    locked_file *place = find(file);
    const qp_meter *meter = call ? call->meter : NULL;
    if (!place || place->held[kind].is_held) {
        return;
    }
    held_lock *lock = &place->held[kind];
    lock->is_held = meter != NULL;
    if (meter) {
        lock->key = meter->key;
        lock->recording = qp_recording;
        lock->thread = qp_here.thread;
        lock->start_ticks = qp_clock_ticks();
        if (kind == QP_WRITE_LOCK) {
            lock->database_ticks = database_ticks(qp_here.thread, call, lock->start_ticks);
        }
    }
}

/* The call's entry for locks of this kind and key; NULL: it has no room. */
static qp_call_hold *hold_of(qp_file_work *work, const qp_call_hold *like)
{
    for (int i = 0; i < work->holds; i++) {
        qp_call_hold *known = &work->hold[i];
        if (known->kind == like->kind && known->path == like->path &&
            qp_same_key(&known->key, &like->key)) {
            return known;
        }
    }
    if (work->holds == QP_CALL_HOLDS) {
        return NULL;
    }
    qp_call_hold *added = &work->hold[work->holds++];
    *added = (qp_call_hold){.kind = like->kind, .path = like->path, .key = like->key};
    return added;
}

void qp_lock_released(const void *file, qp_lock_kind kind, qp_active *call)
{
    locked_file *place = find(file);
    held_lock *lock = place ? &place->held[kind] : NULL;
    if (!lock || !lock->is_held) {
        return;
    }
    lock->is_held = false;
    uint64_t now = qp_clock_ticks();
    int64_t ticks = qp_clock_elapsed(lock->start_ticks, now);
    bool is_notable = kind == QP_WRITE_LOCK || qp_clock_ns(ticks) >= READ_NOTABLE_NS;
    if (!call || lock->recording != qp_recording || !is_notable) {
        return;
    }
    const qp_call_hold like = {.kind = kind, .path = place->path, .key = lock->key};
    qp_call_hold *hold = hold_of(&call->work, &like);
    if (!hold) {
        return;
    }
    call->work.any = true;
    hold->sums.count++;
    hold->sums.ticks += ticks;
    hold->sums.max_ticks = ticks > hold->sums.max_ticks ? ticks : hold->sums.max_ticks;
    if (kind == QP_WRITE_LOCK && lock->thread == qp_here.thread) {
        hold->sums.database_ticks +=
            database_ticks(qp_here.thread, call, now) - lock->database_ticks;
        hold->sums.database_of_ticks += ticks;
    }
    if (ticks == hold->sums.max_ticks) {
        hold->start_ticks = lock->start_ticks;
        hold->end_ticks = now;
    }
}

void qp_locks_after_fork(void)
{
    for (int i = 0; i < FILES + NEAR; i++) {
        memset(files[i].held, 0, sizeof files[i].held);
    }
}
