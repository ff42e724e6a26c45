#include "counters/lock_waits.h"

#include <string.h>

#include "counters/locks.h"
#include "runtime/clock.h"

static int64_t file_ticks(const qp_file_sums *sums)
{
    return sums->sync_ticks + sums->read_ticks + sums->write_ticks;
}

/* Returns the call's wait that is in progress, or that ended last; NULL if none. */
static qp_call_wait *last_wait(qp_file_work *work)
{
    return work->waits ? &work->wait[work->waits - 1] : NULL;
}

/* Adds the time since the lock was refused. The call spent this time in the busy handler of SQLite
 * or of the program. */
void qp_lock_retried(const void *f, qp_active_call *call)
{
    qp_file_work *work = &call->work;
    uint64_t now = qp_clock_ticks();
    work->sums.lock_ticks += qp_elapsed_ticks(work->refused_ticks, now) -
                             (file_ticks(&work->sums) - work->file_ticks_then);
    work->refused_file = NULL;
    const qp_locked_file *locks = qp_locks_of_file(f);
    qp_call_wait *last = last_wait(work);
    if (locks && last && last->time.connection == locks->number) {
        last->time.end_ticks = now;
    }
}

/* Returns a slot for another wait of a call. If all slots are in use, replaces the shortest
 * wait. */
static qp_call_wait *next_wait(qp_file_work *work)
{
    if (work->waits < QP_CALL_WAITS) {
        return &work->wait[work->waits++];
    }
    int shortest = 0;
    for (int i = 1; i < QP_CALL_WAITS; i++) {
        const qp_lock_time *one = &work->wait[i].time, *than = &work->wait[shortest].time;
        bool is_shorter = qp_elapsed_ticks(one->start_ticks, one->end_ticks) <
                          qp_elapsed_ticks(than->start_ticks, than->end_ticks);
        shortest = is_shorter ? i : shortest;
    }
    memmove(&work->wait[shortest], &work->wait[shortest + 1],
            (size_t)(QP_CALL_WAITS - 1 - shortest) * sizeof *work->wait);
    return &work->wait[QP_CALL_WAITS - 1];
}

void qp_lock_refused(const void *f, int lock, qp_active_call *call)
{
    qp_file_work *work = &call->work;
    work->any = true;
    work->refused_file = f;
    work->refused_ticks = qp_clock_ticks();
    work->file_ticks_then = file_ticks(&work->sums);
    const qp_locked_file *locks = qp_locks_of_file(f);
    if (locks && work->waited_file != f) { /* otherwise the same wait continues */
        work->waited_file = f;
        work->waited_lock = lock;
        bool writes = locks->held[QP_WRITE_LOCK].is_held;
        work->would_write = work->failed = false;
        *next_wait(work) = (qp_call_wait){
            locks->path, {locks->number, writes, work->refused_ticks, work->refused_ticks}};
        if (writes) {
            qp_locks_writer_waits(locks->path);
        }
    }
}

void qp_lock_upgrade_refused(const void *f, qp_active_call *call)
{
    const qp_locked_file *locks = qp_locks_of_file(f);
    const qp_held_lock *read = locks ? &locks->held[QP_READ_LOCK] : NULL;
    call->work.would_write |= read && read->is_held && read->call_start_ticks != call->start_ticks;
}
