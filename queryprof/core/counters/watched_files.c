#include "counters/watched_files.h"

#include <stdatomic.h>
#include <stddef.h>

#include "counters/locks.h"
#include "runtime/clock.h"

/* As sqlite3.h declares them; fields are only ever added at the end. */
typedef struct file file;

typedef struct {
    int version;
    int (*close)(file *);
    int (*read)(file *, void *, int, int64_t);
    int (*write)(file *, const void *, int, int64_t);
    int (*truncate)(file *, int64_t);
    int (*sync)(file *, int);
    int (*file_size)(file *, int64_t *);
    int (*lock)(file *, int);
    int (*unlock)(file *, int);
    void *unwatched[4];
    /* from version 2 on */
    int (*shm_map)(file *, int, int, int, void volatile **);
    int (*shm_lock)(file *, int, int, int);
    void *unwatched_of_2[2];
    /* from version 3 on */
    void *unwatched_of_3[2];
} io_methods;

struct file {
    const io_methods *methods;
};

enum {
    NEWEST_METHODS = 3,
    LEVEL_SHARED = 1,
    LEVEL_RESERVED = 2,
    SHM_UNLOCK = 1, /* flags */
    SHM_SHARED = 4,
    SHM_EXCLUSIVE = 8,
    SHM_WRITER = 0, /* offsets of locks in a write-ahead log's index */
    SHM_READERS = 3,
    PRIMARY_CODE = 0xff,
    BUSY = 5,
    TABLES = 16
};

/* A copy of one of SQLite's tables of functions, and the table. */
typedef struct {
    io_methods ours;                    /* first: a watched file's table is one of these */
    const io_methods *_Atomic original; /* stored last; NULL: not complete */
} watched_methods;

static struct {
    watched_methods known[TABLES]; /* those with an original are complete */
    _Atomic int taken;
} tables;

static inline const io_methods *original_of(const file *f)
{
    return ((const watched_methods *)f->methods)->original;
}

static int watched_read(file *f, void *to, int bytes, int64_t offset)
{
    qp_file_work *work = qp_file_work_here();
    if (!work) {
        return original_of(f)->read(f, to, bytes, offset);
    }
    uint64_t start = qp_clock_ticks();
    int result = original_of(f)->read(f, to, bytes, offset);
    work->sums.read_ticks += qp_clock_elapsed(start, qp_clock_ticks());
    work->sums.read_bytes += bytes;
    return result;
}

static int watched_write(file *f, const void *from, int bytes, int64_t offset)
{
    qp_file_work *work = qp_file_work_here();
    if (!work) {
        return original_of(f)->write(f, from, bytes, offset);
    }
    uint64_t start = qp_clock_ticks();
    int result = original_of(f)->write(f, from, bytes, offset);
    work->sums.write_ticks += qp_clock_elapsed(start, qp_clock_ticks());
    work->sums.written_bytes += bytes;
    return result;
}

static int watched_truncate(file *f, int64_t bytes)
{
    qp_file_work *work = qp_file_work_here();
    uint64_t start = qp_clock_ticks();
    int result = original_of(f)->truncate(f, bytes);
    if (work) {
        work->sums.write_ticks += qp_clock_elapsed(start, qp_clock_ticks());
    }
    return result;
}

static int watched_sync(file *f, int flags)
{
    qp_file_work *work = qp_file_work_here();
    uint64_t start = qp_clock_ticks();
    int result = original_of(f)->sync(f, flags);
    if (work) {
        work->sums.sync_ticks += qp_clock_elapsed(start, qp_clock_ticks());
        work->sums.syncs++;
    }
    return result;
}

static int64_t file_ticks(const qp_file_sums *sums)
{
    return sums->sync_ticks + sums->read_ticks + sums->write_ticks;
}

/* A lock is attempted. If this file's was refused before, the call has waited since: in SQLite's
 * busy handler or in the program's own. */
static void attempt_lock(const file *f, qp_active *call)
{
    qp_file_work *work = call ? &call->work : NULL;
    if (work && work->refused_file == f) {
        uint64_t now = qp_clock_ticks();
        work->sums.lock_ticks += qp_clock_elapsed(work->refused_ticks, now) -
                                 (file_ticks(&work->sums) - work->file_ticks_then);
        work->refused_file = NULL;
        work->wait_end_ticks = now;
    }
}

static void refuse_lock(const file *f, qp_active *call)
{
    qp_file_work *work = &call->work;
    work->any = true;
    work->refused_file = f;
    work->refused_ticks = qp_clock_ticks();
    work->file_ticks_then = file_ticks(&work->sums);
    const qp_locked_file *locks = work->wait_path ? NULL : qp_locks_of(f);
    if (locks) {
        work->wait_path = locks->path;
        work->wait_start_ticks = work->wait_end_ticks = work->refused_ticks;
    }
}

static bool is_busy(int result)
{
    return (result & PRIMARY_CODE) == BUSY;
}

static int watched_lock(file *f, int level)
{
    qp_active *call = qp_file_call_here();
    attempt_lock(f, call);
    int result = original_of(f)->lock(f, level);
    qp_locked_file *locks = result == 0 ? qp_locks_of(f) : NULL;
    if (locks && (level >= LEVEL_RESERVED || (level == LEVEL_SHARED && !locks->has_wal))) {
        qp_lock_taken(locks, level == LEVEL_SHARED ? QP_READ_LOCK : QP_WRITE_LOCK, call);
    } else if (call && is_busy(result)) {
        refuse_lock(f, call);
    }
    return result;
}

static int watched_unlock(file *f, int level)
{
    qp_locked_file *locks = level < LEVEL_RESERVED ? qp_locks_of(f) : NULL;
    if (locks) {
        qp_active *call = qp_file_call_here();
        qp_lock_released(locks, QP_WRITE_LOCK, call);
        if (level < LEVEL_SHARED && !locks->has_wal) {
            qp_lock_released(locks, QP_READ_LOCK, call);
        }
    }
    return original_of(f)->unlock(f, level);
}

/* The lock of a write-ahead log: a reader's, the writer's, or another, QP_LOCK_KINDS. */
static qp_lock_kind kind_of(int offset, int flags)
{
    return offset >= SHM_READERS && (flags & SHM_SHARED)     ? QP_READ_LOCK
           : offset == SHM_WRITER && (flags & SHM_EXCLUSIVE) ? QP_WRITE_LOCK
                                                             : QP_LOCK_KINDS;
}

static int watched_shm_lock(file *f, int offset, int count, int flags)
{
    qp_active *call = qp_file_call_here();
    qp_lock_kind kind = kind_of(offset, flags);
    qp_locked_file *locks = kind < QP_LOCK_KINDS ? qp_locks_of(f) : NULL;
    if (flags & SHM_UNLOCK) {
        if (locks) {
            qp_lock_released(locks, kind, call);
        }
        return original_of(f)->shm_lock(f, offset, count, flags);
    }
    if (locks && !locks->has_wal) { /* what it holds by its own lock is no transaction */
        locks->has_wal = true;
        locks->held[QP_READ_LOCK].is_held = false;
    }
    attempt_lock(f, call);
    int result = original_of(f)->shm_lock(f, offset, count, flags);
    if (result == 0 && locks) {
        qp_lock_taken(locks, kind, call);
    } else if (call && is_busy(result)) {
        refuse_lock(f, call);
    }
    return result;
}

static int watched_close(file *f)
{
    int (*original)(file *) = original_of(f)->close; /* it clears the file */
    qp_locked_file *locks = qp_locks_of(f);
    if (locks) {
        qp_lock_released(locks, QP_WRITE_LOCK, qp_file_call_here());
        qp_lock_released(locks, QP_READ_LOCK, qp_file_call_here());
        qp_locks_closed(f);
    }
    return original(f);
}

static size_t bytes_of(int version)
{
    return version == 1   ? offsetof(io_methods, shm_map)
           : version == 2 ? offsetof(io_methods, unwatched_of_3)
                          : sizeof(io_methods);
}

static const io_methods *find_watched(const io_methods *original)
{
    for (int i = 0; i < TABLES; i++) {
        if (tables.known[i].original == original || &tables.known[i].ours == original) {
            return &tables.known[i].ours;
        }
    }
    return NULL;
}

/* A copy with our functions; two threads may make one of the same table. NULL: there is no room. */
static const io_methods *add_watched(const io_methods *original)
{
    int place = tables.taken < TABLES ? atomic_fetch_add(&tables.taken, 1) : TABLES;
    if (place >= TABLES) {
        return NULL;
    }
    watched_methods *added = &tables.known[place];
    io_methods *ours = &added->ours;
    memcpy(ours, original, bytes_of(original->version));
    ours->close = watched_close;
    ours->read = watched_read;
    ours->write = watched_write;
    ours->truncate = watched_truncate;
    ours->sync = watched_sync;
    ours->lock = watched_lock;
    ours->unlock = watched_unlock;
    if (original->version >= 2) {
        ours->shm_lock = watched_shm_lock;
    }
    added->original = original;
    return ours;
}

void qp_file_watch(void *opened)
{
    file *f = opened;
    const io_methods *original = f ? f->methods : NULL;
    if (!original || original->version < 1 || original->version > NEWEST_METHODS) {
        return;
    }
    const io_methods *ours = find_watched(original);
    ours = ours ? ours : add_watched(original);
    f->methods = ours ? ours : original;
}
