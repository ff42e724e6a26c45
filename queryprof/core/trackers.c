#include "trackers.h"

#include <pythread.h>
#include <string.h>

#include "allocation.h"

enum { TRACKERS = 1024 /* connections open at once whose statements are counted */ };

static struct {
    PyThread_type_lock lock; /* of what follows; never held while waiting for anything */
    qp_tracker **trackers;   /* each allocated when it is first needed, and kept */
    void *dbs[TRACKERS];     /* trackers[i]->db again, close together to search */
    int used;
} state;

bool qp_trackers_start(void)
{
    if (!state.lock) {
        state.lock = PyThread_allocate_lock();
    }
    if (!state.trackers) {
        state.trackers = qp_allocate(TRACKERS, sizeof *state.trackers);
    }
    return state.lock && state.trackers;
}

static int place_of(const void *db)
{
    for (int i = 0; i < state.used; i++) {
        if (state.dbs[i] == db) {
            return i;
        }
    }
    return -1;
}

qp_tracker *qp_tracker_of(const void *db)
{
    PyThread_acquire_lock(state.lock, WAIT_LOCK);
    int place = db ? place_of(db) : -1;
    PyThread_release_lock(state.lock);
    return place < 0 ? NULL : state.trackers[place];
}

/* A place for a connection's tracker; -1: there is none. */
static int take_place(const void *db)
{
    int place = place_of(db); /* found: its trace was displaced, so its end was never told */
    if (place < 0) {
        place = place_of(NULL);
    }
    if (place < 0 && state.used < TRACKERS) {
        state.trackers[state.used] = qp_allocate(1, sizeof(qp_tracker));
        place = state.trackers[state.used] ? state.used++ : -1;
    }
    return place;
}

qp_tracker *qp_tracker_take(void *db, uint32_t epoch)
{
    PyThread_acquire_lock(state.lock, WAIT_LOCK);
    int place = take_place(db);
    qp_tracker *taken = place < 0 ? NULL : state.trackers[place];
    if (taken) {
        memset(taken, 0, sizeof *taken);
        taken->db = state.dbs[place] = db;
        taken->epoch = epoch;
    }
    PyThread_release_lock(state.lock);
    return taken;
}

void qp_tracker_release(qp_tracker *tracker)
{
    PyThread_acquire_lock(state.lock, WAIT_LOCK);
    int place = place_of(tracker->db);
    tracker->db = NULL;
    if (place >= 0) {
        state.dbs[place] = NULL;
    }
    PyThread_release_lock(state.lock);
}

void qp_trackers_visit(void (*visit)(qp_tracker *tracker))
{
    PyThread_acquire_lock(state.lock, WAIT_LOCK);
    for (int i = 0; i < state.used; i++) {
        if (state.dbs[i]) {
            visit(state.trackers[i]);
        }
    }
    PyThread_release_lock(state.lock);
}

qp_counted_statement *qp_tracker_set(qp_tracker *tracker, const void *statement)
{
    uint64_t hash = (uint64_t)(uintptr_t)statement * 0x9E3779B97F4A7C15u;
    return &tracker->statements[(hash >> 60 & (QP_TRACKER_SETS - 1)) * QP_TRACKER_WAYS];
}

qp_counted_statement *qp_tracker_find(qp_tracker *tracker, const void *statement)
{
    if (tracker->last && tracker->last->statement == statement) {
        return tracker->last;
    }
    qp_counted_statement *set = qp_tracker_set(tracker, statement);
    for (int way = 0; way < QP_TRACKER_WAYS; way++) {
        if (set[way].statement == statement) {
            return &set[way];
        }
    }
    return NULL;
}

void qp_trackers_after_fork(void)
{
    if (state.lock) {
        state.lock = PyThread_allocate_lock(); /* the old one may be held by a lost thread */
    }
}
