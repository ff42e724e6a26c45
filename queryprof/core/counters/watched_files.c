#include "counters/watched_files.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "counters/lock_waits.h"
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
    /* Version 2 and newer: */
    int (*shm_map)(file *, int, int, int, void volatile **);
    int (*shm_lock)(file *, int, int, int);
    void *unwatched_of_2[2];
    /* Version 3 and newer: */
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
    SHM_CHECKPOINTER = 1,
    SHM_READERS = 3,
    SHM_OLD_READERS = 4, /* the readers of the log; a connection locks all of them to restart it */
    OF_LOG = 16, /* added to the number of a lock in the log's index; the file's own locks have
                  * smaller numbers */
    PRIMARY_CODE = 0xff,
    BUSY = 5
};

/* These functions run in place of SQLite's, and call them. `sqlite` is the table that SQLite gave
 * the file. */

static int do_read(const io_methods *sqlite, file *f, void *to, int bytes, int64_t offset)
{
    qp_file_work *work = qp_running_call_file_work();
    if (!work) {
        return sqlite->read(f, to, bytes, offset);
    }
    uint64_t start = qp_clock_ticks();
    int result = sqlite->read(f, to, bytes, offset);
    work->sums.read_ticks += qp_elapsed_ticks(start, qp_clock_ticks());
    work->sums.read_bytes += bytes;
    return result;
}

static int do_write(const io_methods *sqlite, file *f, const void *from, int bytes, int64_t offset)
{
    qp_file_work *work = qp_running_call_file_work();
    if (!work) {
        return sqlite->write(f, from, bytes, offset);
    }
    uint64_t start = qp_clock_ticks();
    int result = sqlite->write(f, from, bytes, offset);
    work->sums.write_ticks += qp_elapsed_ticks(start, qp_clock_ticks());
    work->sums.written_bytes += bytes;
    return result;
}

static int do_truncate(const io_methods *sqlite, file *f, int64_t bytes)
{
    qp_file_work *work = qp_running_call_file_work();
    uint64_t start = qp_clock_ticks();
    int result = sqlite->truncate(f, bytes);
    if (work) {
        work->sums.write_ticks += qp_elapsed_ticks(start, qp_clock_ticks());
    }
    return result;
}

static int do_sync(const io_methods *sqlite, file *f, int flags)
{
    qp_file_work *work = qp_running_call_file_work();
    uint64_t start = qp_clock_ticks();
    int result = sqlite->sync(f, flags);
    if (work) {
        work->sums.sync_ticks += qp_elapsed_ticks(start, qp_clock_ticks());
        work->sums.syncs++;
    }
    return result;
}

static bool is_busy(int result)
{
    return (result & PRIMARY_CODE) == BUSY;
}

static int do_lock(const io_methods *sqlite, file *f, int level)
{
    qp_active_call *call = qp_running_call_here();
    qp_lock_attempted(f, call);
    int result = sqlite->lock(f, level);
    if (result == 0) {
        qp_lock_granted(f, level, call);
    }
    qp_locked_file *locks = result == 0 ? qp_locks_of_file(f) : NULL;
    if (locks && (level >= LEVEL_RESERVED || (level == LEVEL_SHARED && !locks->has_wal))) {
        qp_lock_taken(locks, level == LEVEL_SHARED ? QP_READ_LOCK : QP_WRITE_LOCK, call);
    } else if (call && is_busy(result)) {
        qp_lock_refused(f, level, call);
        if (level == LEVEL_RESERVED) {
            qp_lock_upgrade_refused(f, call);
        }
    }
    return result;
}

static int do_unlock(const io_methods *sqlite, file *f, int level)
{
    qp_locked_file *locks = level < LEVEL_RESERVED ? qp_locks_of_file(f) : NULL;
    if (locks) {
        qp_active_call *call = qp_running_call_here();
        qp_lock_released(locks, QP_WRITE_LOCK, call);
        if (level < LEVEL_SHARED && !locks->has_wal) {
            qp_lock_released(locks, QP_READ_LOCK, call);
        }
    }
    return sqlite->unlock(f, level);
}

/* Returns the kind of a write-ahead log's lock: a reader's or the writer's; QP_LOCK_KINDS for other
 * locks. */
static qp_lock_kind wal_lock_kind(int offset, int flags)
{
    return offset >= SHM_READERS && (flags & SHM_SHARED)     ? QP_READ_LOCK
           : offset == SHM_WRITER && (flags & SHM_EXCLUSIVE) ? QP_WRITE_LOCK
                                                             : QP_LOCK_KINDS;
}

/* Notes an exclusive lock of a log that is not the writer's. A checkpoint locks single slots of old
 * readers, and the connection that restarts the log locks all of them. A connection that begins to
 * read also locks a single slot. */
static void note_log_lock(file *f, int offset, int count, int result)
{
    qp_locked_file *of_log = qp_locks_of_file(f);
    if (of_log && offset == SHM_CHECKPOINTER) {
        of_log->is_checkpointing = result == 0;
    } else if (of_log && offset >= SHM_OLD_READERS) {
        if (result == 0 && count > 1) {
            qp_log_restarted(of_log);
        } else if (is_busy(result) && (count > 1 || of_log->is_checkpointing)) {
            qp_log_kept(of_log);
        }
    }
}

static int do_shm_lock(const io_methods *sqlite, file *f, int offset, int count, int flags)
{
    qp_active_call *call = qp_running_call_here();
    qp_lock_kind kind = wal_lock_kind(offset, flags);
    qp_locked_file *locks = kind < QP_LOCK_KINDS ? qp_locks_of_file(f) : NULL;
    if (flags & SHM_UNLOCK) {
        if (locks) {
            qp_lock_released(locks, kind, call);
        } else if (offset == SHM_CHECKPOINTER) {
            note_log_lock(f, offset, count, BUSY);
        }
        return sqlite->shm_lock(f, offset, count, flags);
    }
    if (locks && !locks->has_wal) { /* with a log, the file's own lock is not a transaction */
        locks->has_wal = true;
        locks->held[QP_READ_LOCK].is_held = false;
    }
    qp_lock_attempted(f, call);
    int result = sqlite->shm_lock(f, offset, count, flags);
    if (result == 0) {
        qp_lock_granted(f, OF_LOG + offset, call);
    }
    if (result == 0 && locks) {
        qp_lock_taken(locks, kind, call);
    } else if (flags & SHM_EXCLUSIVE) {
        note_log_lock(f, offset, count, result);
    }
    if (call && is_busy(result)) {
        qp_lock_refused(f, OF_LOG + offset, call);
        if (kind == QP_WRITE_LOCK) {
            qp_lock_upgrade_refused(f, call);
        }
    }
    return result;
}

static int do_close(const io_methods *sqlite, file *f)
{
    int (*original)(file *) = sqlite->close; /* SQLite's close clears the file */
    qp_locked_file *locks = qp_locks_of_file(f);
    if (locks) {
        qp_lock_released(locks, QP_WRITE_LOCK, qp_running_call_here());
        qp_lock_released(locks, QP_READ_LOCK, qp_running_call_here());
        qp_locks_file_closed(f);
    }
    return original(f);
}

/* For each of SQLite's method tables (sqlite3_io_methods), there are separate functions of ours,
 * compiled for that table. So a copy of one of our method tables works, even if a tool replaces a
 * function in it. SQLite has three method tables: for databases, for journals, and for files locked
 * by another file. */
enum { TABLES = 3 * QP_WATCHED_LIBRARIES };

static struct {
    struct {
        const io_methods *sqlite; /* static memory of a library that is never unloaded */
        io_methods ours;
    } known[TABLES]; /* never changed, nor freed, once counted */
    int count;
} tables;

/* clang-format off */
#define EACH_TABLE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
/* clang-format on */

#define SQLITES(n) (tables.known[n].sqlite)

#define DEFINE_FUNCTIONS(n)                                                    \
    static int close_##n(file *f)                                              \
    {                                                                          \
        return do_close(SQLITES(n), f);                                        \
    }                                                                          \
    static int read_##n(file *f, void *to, int bytes, int64_t offset)          \
    {                                                                          \
        return do_read(SQLITES(n), f, to, bytes, offset);                      \
    }                                                                          \
    static int write_##n(file *f, const void *from, int bytes, int64_t offset) \
    {                                                                          \
        return do_write(SQLITES(n), f, from, bytes, offset);                   \
    }                                                                          \
    static int truncate_##n(file *f, int64_t bytes)                            \
    {                                                                          \
        return do_truncate(SQLITES(n), f, bytes);                              \
    }                                                                          \
    static int sync_##n(file *f, int flags)                                    \
    {                                                                          \
        return do_sync(SQLITES(n), f, flags);                                  \
    }                                                                          \
    static int lock_##n(file *f, int level)                                    \
    {                                                                          \
        return do_lock(SQLITES(n), f, level);                                  \
    }                                                                          \
    static int unlock_##n(file *f, int level)                                  \
    {                                                                          \
        return do_unlock(SQLITES(n), f, level);                                \
    }                                                                          \
    static int shm_lock_##n(file *f, int offset, int count, int flags)         \
    {                                                                          \
        return do_shm_lock(SQLITES(n), f, offset, count, flags);               \
    }

EACH_TABLE(DEFINE_FUNCTIONS)

#define FUNCTIONS(n)           \
    {.close = close_##n,       \
     .read = read_##n,         \
     .write = write_##n,       \
     .truncate = truncate_##n, \
     .sync = sync_##n,         \
     .lock = lock_##n,         \
     .unlock = unlock_##n,     \
     .shm_lock = shm_lock_##n},

static const io_methods functions[] = {EACH_TABLE(FUNCTIONS)};
_Static_assert(sizeof functions / sizeof *functions == TABLES, "a table has no functions");

static size_t table_bytes(int version)
{
    return version == 1   ? offsetof(io_methods, shm_map)
           : version == 2 ? offsetof(io_methods, unwatched_of_3)
                          : sizeof(io_methods);
}

static int count_of_tables(void)
{
    return __atomic_load_n(&tables.count, __ATOMIC_ACQUIRE);
}

/* Returns the number of one of SQLite's tables; the number of known tables if it is unknown. */
static int table_number(const io_methods *sqlite)
{
    int number = 0, count = count_of_tables();
    while (number < count && tables.known[number].sqlite != sqlite) {
        number++;
    }
    return number;
}

bool qp_file_table_add(const void *table)
{
    const io_methods *sqlite = table;
    if (sqlite->version < 1 || sqlite->version > NEWEST_METHODS) {
        return false;
    }
    int number = table_number(sqlite);
    if (number == TABLES || number < tables.count) {
        return number < TABLES;
    }
    tables.known[number].sqlite = sqlite;
    io_methods *ours = &tables.known[number].ours;
    memcpy(ours, sqlite, table_bytes(sqlite->version));
    ours->close = functions[number].close;
    ours->read = functions[number].read;
    ours->write = functions[number].write;
    ours->truncate = functions[number].truncate;
    ours->sync = functions[number].sync;
    ours->lock = functions[number].lock;
    ours->unlock = functions[number].unlock;
    if (sqlite->version >= 2 && sqlite->shm_lock) { /* without shm_lock there is no shared memory,
                                                     * so no write-ahead log */
        ours->shm_lock = functions[number].shm_lock;
    }
    __atomic_store_n(&tables.count, number + 1, __ATOMIC_RELEASE);
    return true;
}

bool qp_file_has_table(const void *opened)
{
    const file *f = opened;
    return f && f->methods;
}

bool qp_file_watch(void *opened)
{
    file *f = opened;
    const io_methods *methods = f ? f->methods : NULL;
    int count = count_of_tables(), number = methods ? table_number(methods) : count;
    if (number < count) {
        f->methods = &tables.known[number].ours;
        return true;
    }
    for (int i = 0; i < count; i++) {
        if (methods == &tables.known[i].ours) {
            return true;
        }
    }
    return false;
}
