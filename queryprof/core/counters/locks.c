#include "counters/locks.h"

#include <string.h>

#include "counters/database_paths.h"
#include "counters/write_ahead_log.h"
#include "memory/region.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"

enum {
    HELD_NEAR = 8,                /* slots tried for the row that shows a held lock to readers */
    READ_NOTABLE_NS = 1000000000, /* a shorter read transaction is not recorded, unless it kept
                                   * writers from committing */
    READ_BLOCKS_NS = 1000000, /* minimum for a read transaction that kept writers from committing */
    LOG_REFUSALS = 20,        /* fewer refusals may be single readers */
    LOG_CHECK_NS = 250000000, /* the log's size is read at most this often */
    LARGE_LOG_BYTES = 10000000 /* SQLite restarts a log of about 4 MB by default */
};

qp_locked_file qp_locked_files[QP_LOCKED_FILES + QP_LOCKED_FILES_NEAR];

static _Atomic int open_files;     /* number of files in qp_locked_files */
static _Atomic uint32_t last_file; /* the last number given to a file */

void qp_locks_file_opened(const void *file, const char *path, bool of_main)
{
    uint32_t number = qp_database_path_number(path, of_main);
    qp_locked_file *place = qp_locks_first_slot(file);
    for (int i = 0; number && i < QP_LOCKED_FILES_NEAR; i++) {
        const void *none = NULL;
        if (atomic_compare_exchange_strong(&place[i].file, &none, file)) {
            place[i].path = number; /* no other thread reads it: the file is not in use yet */
            place[i].number = ++last_file;
            place[i].has_wal = false;
            place[i].is_checkpointing = false;
            place[i].log_refusals = 0;
            place[i].log_checked_ticks = 0;
            place[i].kept_log_bytes = 0;
            memset(place[i].held, 0, sizeof place[i].held);
            open_files++;
            return;
        }
    }
}

void qp_locks_file_closed(const void *file)
{
    qp_locked_file *place = qp_locks_of_file(file);
    if (place) {
        place->file = NULL;
        open_files--;
    }
}

/* Returns the time that a thread has spent in the driver's calls, including the call in
 * progress. */
static int64_t database_ticks(const qp_thread *thread, const qp_active_call *call, uint64_t now)
{
    while (call->below) {
        call = call->below;
    }
    return thread->database_ticks + qp_elapsed_ticks(call->start_ticks, now);
}

/* Returns whether a call has taken a lock of a file. */
static bool has_taken_lock(const qp_locked_file *file, const qp_active_call *call)
{
    return file->held[QP_WRITE_LOCK].call_start_ticks == call->start_ticks ||
           file->held[QP_READ_LOCK].call_start_ticks == call->start_ticks;
}

/* Makes a taken write lock visible to readers of the memory. */
static QP_COLD void publish_lock(const qp_locked_file *file, qp_held_lock *lock)
{
    qp_held_row *rows = qp_first_row(QP_HELD_ROWS);
    lock->row = NULL;
    for (uint32_t i = 0; i < HELD_NEAR && qp_row_count(QP_HELD_ROWS) == QP_HELD; i++) {
        qp_held_row *row = &rows[((uintptr_t)(file - qp_locked_files) + i) % QP_HELD];
        const void *none = NULL;
        if (atomic_compare_exchange_strong(&row->file, &none, file)) {
            row->key = lock->key;
            row->identity = qp_database_file_identity(file->path);
            row->start_ticks = lock->start_ticks;
            __atomic_store_n(&row->recording, lock->recording, __ATOMIC_RELEASE);
            lock->row = row;
            return;
        }
    }
}

/* Returns the visible row of a write lock; NULL if it has no row, or if the lock belongs to another
 * recording. */
static qp_held_row *published_row(const qp_locked_file *file, const qp_held_lock *lock)
{
    qp_held_row *row = lock->recording == qp_recording ? lock->row : NULL;
    return row && row->file == file ? row : NULL;
}

static void unpublish_lock(const qp_locked_file *file, const qp_held_lock *lock)
{
    qp_held_row *row = published_row(file, lock);
    if (row) {
        __atomic_store_n(&row->recording, 0, __ATOMIC_RELEASE);
        row->file = NULL;
    }
}

/* Returns when a call took a read lock: the end of its wait for that file, or else the start of the
 * call. Does not read the clock, because that would slow every query. */
static uint64_t read_lock_start(const qp_locked_file *file, const qp_active_call *call)
{
    const qp_file_work *work = &call->work;
    const qp_call_wait *wait = work->waits ? &work->wait[work->waits - 1] : NULL;
    return wait && wait->time.connection == file->number ? wait->time.end_ticks : call->start_ticks;
}

void qp_lock_taken(qp_locked_file *file, qp_lock_kind kind, qp_active_call *call)
{
    const qp_meter *meter = call ? call->meter : NULL;
    qp_held_lock *lock = &file->held[kind];
    if (lock->is_held) {
        return;
    }
    if (!meter) {
        return;
    }
    const qp_locked_file *before = call->work.taken;
    call->work.took_others |= before && before != file && has_taken_lock(before, call);
    call->work.taken = file;
    lock->key = meter->key;
    lock->recording = qp_recording;
    lock->thread = qp_here.thread;
    lock->call_start_ticks = call->start_ticks;
    lock->counted_ticks = 0;
    if (kind == QP_WRITE_LOCK) {
        file->held[QP_READ_LOCK].writes = true;
        lock->start_ticks = qp_clock_ticks();
        lock->database_ticks = database_ticks(qp_here.thread, call, lock->start_ticks);
        lock->changed_rows = qp_here.thread->changed_rows;
        publish_lock(file, lock);
    } else {
        lock->writes = lock->blocks = false;
        lock->start_ticks = read_lock_start(file, call);
    }
    /* Must be stored last, because another thread that collects locks reads the other fields if
     * is_held is true. */
    __atomic_store_n(&lock->is_held, true, __ATOMIC_RELEASE);
}

/* Returns the call's entry for locks of this kind and key; NULL if its table is full. */
static qp_call_hold *find_or_add_hold(qp_file_work *work, const qp_call_hold *like)
{
    for (int i = 0; i < work->holds; i++) {
        qp_call_hold *known = &work->hold[i];
        if (known->kind == like->kind && known->path == like->path &&
            known->is_own == like->is_own && qp_same_key(&known->key, &like->key)) {
            return known;
        }
    }
    if (work->holds == QP_CALL_HOLDS) {
        return NULL;
    }
    qp_call_hold *added = &work->hold[work->holds++];
    *added = (qp_call_hold){
        .kind = like->kind, .path = like->path, .is_own = like->is_own, .key = like->key};
    return added;
}

/* Locks that were released outside of calls, for example by the end of a cursor. */
enum { ORPHANS = 32 };
static struct {
    _Atomic int state;  /* free, being written, complete */
    uint32_t recording; /* the key is valid only in this recording */
    qp_call_hold hold;
} orphans[ORPHANS];

enum { FREE, BEING_WRITTEN, COMPLETE };

static void keep_orphan_hold(const qp_call_hold *hold)
{
    for (int i = 0; i < ORPHANS; i++) {
        int expected = FREE;
        if (atomic_compare_exchange_strong(&orphans[i].state, &expected, BEING_WRITTEN)) {
            orphans[i].recording = qp_recording;
            orphans[i].hold = *hold;
            orphans[i].state = COMPLETE;
            return;
        }
    }
}

/* Returns whether a read transaction has been open long enough to be kept. For a transaction that
 * writes, its write lock is kept instead. */
static bool is_long_read(const qp_locked_file *file, qp_lock_kind kind, uint64_t now)
{
    const qp_held_lock *lock = &file->held[kind];
    int64_t ticks = qp_elapsed_ticks(lock->start_ticks, now);
    bool blocks_none = file->has_wal && !lock->blocks;
    return kind == QP_READ_LOCK && !lock->writes &&
           qp_ticks_to_ns(ticks) >= (blocks_none ? READ_NOTABLE_NS : READ_BLOCKS_NS);
}

/* Returns whether a lock is counted while it is held. `with_held`: also count locks that were taken
 * less than a second ago. */
static bool is_collected(const qp_locked_file *file, qp_lock_kind kind, uint64_t now,
                         bool with_held)
{
    const qp_held_lock *lock = &file->held[kind];
    if (!__atomic_load_n(&lock->is_held, __ATOMIC_ACQUIRE) || lock->recording != qp_recording ||
        lock->start_ticks >= now) {
        return false;
    }
    bool is_long = qp_ticks_to_ns(qp_elapsed_ticks(lock->start_ticks, now)) >= READ_NOTABLE_NS;
    return (with_held || is_long) && (kind == QP_WRITE_LOCK || is_long_read(file, kind, now));
}

/* Returns the part of a lock's time, up to `now`, that the sums do not contain yet. */
static qp_call_hold uncounted_time(const qp_locked_file *file, qp_lock_kind kind, uint64_t now)
{
    const qp_held_lock *lock = &file->held[kind];
    bool is_new = !lock->counted_ticks;
    return (qp_call_hold){
        .kind = kind,
        .path = file->path,
        .key = lock->key,
        .sums = {.count = is_new,
                 .ticks = qp_elapsed_ticks(is_new ? lock->start_ticks : lock->counted_ticks, now),
                 .max_ticks = qp_elapsed_ticks(lock->start_ticks, now),
                 .log_bytes = is_long_read(file, kind, now)
                                  ? qp_wal_used_bytes(qp_database_path_text(file->path))
                              : kind == QP_WRITE_LOCK && file->log_recording == qp_recording
                                  ? file->kept_log_bytes
                                  : 0},
        .longest = {.connection = file->number, .start_ticks = lock->start_ticks, .end_ticks = now},
    };
}

/* Adds a lock to the locks that a call has released. */
static void add_hold_to_call(qp_active_call *call, const qp_call_hold *held)
{
    qp_call_hold *hold = find_or_add_hold(&call->work, held);
    if (!hold) {
        return;
    }
    call->work.any = true;
    bool is_longest = held->sums.max_ticks >= hold->sums.max_ticks;
    qp_lock_sums_merge(&hold->sums, &held->sums);
    if (is_longest) {
        hold->longest = held->longest;
    }
}

/* Restarts the time of the read lock when a transaction has written, because an open cursor may
 * keep the read lock. */
static void restart_read_lock(qp_held_lock *lock, uint64_t now)
{
    if (lock->is_held && lock->writes) {
        lock->writes = false;
        lock->start_ticks = now;
        lock->counted_ticks = lock->counted_ticks ? now : 0;
    }
}

void qp_lock_released(qp_locked_file *file, qp_lock_kind kind, qp_active_call *call)
{
    qp_held_lock *lock = &file->held[kind];
    if (!lock->is_held) {
        return;
    }
    bool same_call = call && call->start_ticks == lock->call_start_ticks;
    lock->is_held = false;
    if (kind == QP_WRITE_LOCK) {
        unpublish_lock(file, lock);
    }
    if (lock->recording != qp_recording || (kind == QP_READ_LOCK && same_call)) {
        return;
    }
    uint64_t now = qp_clock_ticks();
    if (kind == QP_WRITE_LOCK) {
        restart_read_lock(&file->held[QP_READ_LOCK], now);
    } else if (!is_long_read(file, kind, now)) {
        return;
    }
    qp_call_hold held = uncounted_time(file, kind, now);
    held.is_own = same_call;
    if (call && kind == QP_WRITE_LOCK && lock->thread == qp_here.thread) {
        held.sums.database_ticks = database_ticks(qp_here.thread, call, now) - lock->database_ticks;
        held.sums.database_of_ticks = held.sums.max_ticks;
        held.sums.changed_rows = qp_here.thread->changed_rows - lock->changed_rows;
    }
    if (call) {
        add_hold_to_call(call, &held);
    } else {
        keep_orphan_hold(&held);
    }
}

void qp_locks_collect(void (*add)(const qp_call_hold *hold), bool with_held)
{
    for (int i = 0; i < ORPHANS; i++) {
        if (orphans[i].state == COMPLETE) {
            if (orphans[i].recording == qp_recording) {
                add(&orphans[i].hold);
            }
            orphans[i].state = FREE;
        }
    }
    uint64_t now = qp_clock_ticks();
    for (int i = 0; open_files && i < QP_LOCKED_FILES + QP_LOCKED_FILES_NEAR; i++) {
        for (int kind = 0; qp_locked_files[i].file && kind < QP_LOCK_WAIT; kind++) {
            if (is_collected(&qp_locked_files[i], (qp_lock_kind)kind, now, with_held)) {
                qp_call_hold rest = uncounted_time(&qp_locked_files[i], (qp_lock_kind)kind, now);
                qp_locked_files[i].held[kind].counted_ticks = now;
                add(&rest);
            }
        }
    }
}

QP_COLD void qp_locks_writer_waits(uint32_t path)
{
    for (int i = 0; i < QP_LOCKED_FILES + QP_LOCKED_FILES_NEAR; i++) {
        if (qp_locked_files[i].file && qp_locked_files[i].path == path) {
            __atomic_store_n(&qp_locked_files[i].held[QP_READ_LOCK].blocks, true, __ATOMIC_RELAXED);
        }
    }
}

QP_COLD void qp_log_kept(qp_locked_file *file)
{
    uint64_t now = qp_clock_ticks();
    if (file->log_recording != qp_recording) {
        file->log_recording = qp_recording;
        file->log_refusals = 0;
        file->kept_log_bytes = 0;
    }
    if (!file->log_refusals++) {
        file->log_kept_ticks = now;
    }
    int64_t kept_ns = qp_ticks_to_ns(qp_elapsed_ticks(file->log_kept_ticks, now));
    int64_t checked_ns = qp_ticks_to_ns(qp_elapsed_ticks(file->log_checked_ticks, now));
    if (file->log_refusals < LOG_REFUSALS || kept_ns < READ_NOTABLE_NS ||
        checked_ns < LOG_CHECK_NS) {
        return;
    }
    int64_t bytes = qp_wal_used_bytes(qp_database_path_text(file->path));
    file->log_checked_ticks = now;
    file->kept_log_bytes = bytes >= LARGE_LOG_BYTES ? bytes : 0;
    if (!file->kept_log_bytes) { /* another connection may have restarted the log */
        file->log_refusals = 0;
    }
}

QP_COLD void qp_log_restarted(qp_locked_file *file)
{
    file->log_refusals = 0;
    file->kept_log_bytes = 0;
}

static void set_key_of_locks(qp_locked_file *file, const qp_active_call *call, const qp_key *key)
{
    for (int kind = 0; kind < QP_LOCK_WAIT; kind++) {
        if (file->held[kind].call_start_ticks == call->start_ticks) {
            file->held[kind].key = *key;
            qp_held_row *row =
                kind == QP_WRITE_LOCK ? published_row(file, &file->held[kind]) : NULL;
            if (row) {
                row->key = *key;
            }
        }
    }
}

void qp_locks_set_key(const qp_active_call *call, const qp_key *key)
{
    if (call->work.taken) {
        set_key_of_locks(call->work.taken, call, key);
    }
    for (int i = 0; call->work.took_others && i < QP_LOCKED_FILES + QP_LOCKED_FILES_NEAR; i++) {
        set_key_of_locks(&qp_locked_files[i], call, key);
    }
}

void qp_locks_after_fork(void)
{
    for (int i = 0; i < QP_LOCKED_FILES + QP_LOCKED_FILES_NEAR; i++) {
        memset(qp_locked_files[i].held, 0, sizeof qp_locked_files[i].held);
        qp_locked_files[i].is_checkpointing = false;
        qp_locked_files[i].log_refusals = 0;
        qp_locked_files[i].kept_log_bytes = 0;
    }
}
