#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dladdr */
#endif
#include "counters/vfs.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "counters/locks.h"
#include "counters/watched_files.h"
#include "runtime/clock.h"

/* As sqlite3.h declares it. */
typedef struct vfs {
    int version;
    int file_bytes;
    int path_bytes;
    struct vfs *next;
    const char *name;
    void *data;
    int (*open)(struct vfs *, const char *, void *, int, int *);
    int (*delete)(struct vfs *, const char *, int);
    void (*unwatched[10])(void);
    void (*unwatched_of_2)(void);
    void (*unwatched_of_3[3])(void);
} vfs;

enum {
    FILE_POINTER = 7,
    VFS_POINTER = 27,
    JOURNAL_POINTER = 28,
    OPEN_READONLY = 0x01,
    OPEN_CREATE = 0x04,
    OPEN_MAIN_DB = 0x100,
    OPEN_MAIN_JOURNAL = 0x800,
    NEWEST_VFS = 3,
    LARGEST_FILE = 4096, /* bytes of a sqlite3_file of SQLite's own; 120 today */
};

static const char *const names[] = {"unix-excl", "unix-dotfile", "unix-none", "unix"};

enum { NAMES = sizeof names / sizeof *names, FRONTS = NAMES * QP_WATCHED_LIBRARIES };

/* The VFSs of ours; entries stay, for connections that have one. */
static struct {
    struct {
        vfs ours;  /* in SQLite's list of VFSs while its recording lasts */
        vfs *base; /* SQLite's own: static memory of a library that is never unloaded */
        const qp_sqlite_functions *sqlite;
    } known[FRONTS];
    int count;        /* changed with the GIL, before what it counts is in use */
    bool is_watching; /* else they only forward */
} fronts;

static int do_open(vfs *base, const char *name, void *f, int flags, int *out_flags)
{
    if (!__atomic_load_n(&fronts.is_watching, __ATOMIC_RELAXED)) {
        return base->open(base, name, f, flags, out_flags);
    }
    qp_file_work *work = flags & OPEN_CREATE ? qp_file_work_here() : NULL;
    uint64_t start = qp_clock_ticks();
    int result = base->open(base, name, f, flags, out_flags);
    if (work) { /* a journal is made */
        work->sums.write_ticks += qp_clock_elapsed(start, qp_clock_ticks());
    }
    if (qp_file_watch(f) && result == 0 && (flags & OPEN_MAIN_DB)) {
        /* Any other name is a value in a statement, which may be a secret. */
        qp_active *call = qp_file_call_here();
        qp_locks_opened(f, call && call->operation == QP_CONNECT ? name : "(attached)");
        if (call) {
            call->work.any = call->work.opened = true;
        }
    }
    return result;
}

static int do_delete(vfs *base, const char *name, int syncs_directory)
{
    qp_file_work *work = qp_file_work_here();
    uint64_t start = qp_clock_ticks();
    int result = base->delete(base, name, syncs_directory);
    int64_t ticks = qp_clock_elapsed(start, qp_clock_ticks());
    if (work && syncs_directory) {
        work->sums.sync_ticks += ticks;
        work->sums.syncs++;
    } else if (work) {
        work->sums.write_ticks += ticks;
    }
    return result;
}

/* Each VFS has functions of its own, which know SQLite's: they follow nothing in the struct that
 * they are called with, which may be a tool's copy. */

/* clang-format off */
#define EACH_FRONT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
/* clang-format on */

#define DEFINE_FUNCTIONS(n)                                                                      \
    static int open_##n(vfs *Py_UNUSED(v), const char *name, void *f, int flags, int *out_flags) \
    {                                                                                            \
        return do_open(fronts.known[n].base, name, f, flags, out_flags);                         \
    }                                                                                            \
    static int delete_##n(vfs *Py_UNUSED(v), const char *name, int syncs_directory)              \
    {                                                                                            \
        return do_delete(fronts.known[n].base, name, syncs_directory);                           \
    }

EACH_FRONT(DEFINE_FUNCTIONS)

#define FUNCTIONS(n) {.open = open_##n, .delete = delete_##n},

static const vfs functions[] = {EACH_FRONT(FUNCTIONS)};
_Static_assert(sizeof functions / sizeof *functions == FRONTS, "a VFS has no functions");

/* Whether two functions are of one library: a VFS of the program's own may have any name. */
static bool same_library(const void *one, const void *other)
{
    Dl_info of_one, of_other;
    return dladdr(one, &of_one) && dladdr(other, &of_other) &&
           of_one.dli_fbase == of_other.dli_fbase;
}

static bool is_sqlites_own(const qp_sqlite_functions *sqlite, const vfs *v)
{
    void *find = NULL, *open = NULL, *delete = NULL;
    memcpy(&find, &sqlite->vfs_find, sizeof find);
    memcpy(&open, &v->open, sizeof open);
    memcpy(&delete, &v->delete, sizeof delete);
    return same_library(open, find) && same_library(delete, find);
}

/* Learns the tables of functions that a VFS gives its files, from a file that it opens for reading.
 * Never a database: to close a file drops the locks that the process has on it. */
static bool learn_tables(vfs *base)
{
    static const char name[] = "/proc/self/stat\0\0"; /* ends as names that SQLite opens do */
    static const int flags[] = {OPEN_READONLY | OPEN_MAIN_DB, OPEN_READONLY | OPEN_MAIN_JOURNAL};
    _Alignas(max_align_t) char memory[LARGEST_FILE];
    struct {
        const struct {
            int version;
            int (*close)(void *);
        } *methods;
    } *f = (void *)memory;
    bool is_known = base->file_bytes <= LARGEST_FILE;
    for (size_t i = 0; is_known && i < sizeof flags / sizeof *flags; i++) {
        int out_flags = 0;
        memset(memory, 0, sizeof memory);
        is_known = base->open(base, name, f, flags[i], &out_flags) == 0 && f->methods &&
                   qp_file_table_learn(f->methods);
        if (f->methods) {
            f->methods->close(f);
        }
    }
    return is_known;
}

/* The number of our VFS in front of one of SQLite's, made if it is new; FRONTS: there is none. */
static int front_of(const qp_sqlite_functions *sqlite, vfs *base)
{
    int number = 0;
    while (number < fronts.count && fronts.known[number].base != base) {
        number++;
    }
    if (number < fronts.count) {
        return number;
    }
    if (number == FRONTS || base->version < 1 || !learn_tables(base)) {
        return FRONTS;
    }
    vfs *ours = &fronts.known[number].ours;
    size_t bytes = base->version == 1   ? offsetof(vfs, unwatched_of_2)
                   : base->version == 2 ? offsetof(vfs, unwatched_of_3)
                                        : sizeof *ours;
    memcpy(ours, base, bytes);
    ours->version = base->version < NEWEST_VFS ? base->version : NEWEST_VFS;
    ours->next = NULL;
    ours->open = functions[number].open;
    ours->delete = functions[number].delete;
    fronts.known[number].base = base;
    fronts.known[number].sqlite = sqlite;
    fronts.count++;
    return number;
}

/* Whether a VFS is one of ours. */
static bool is_ours(const vfs *v)
{
    const char *start = (const char *)fronts.known, *at = (const char *)v;
    return at >= start && at < start + sizeof fronts.known;
}

bool qp_vfs_watch(const qp_sqlite_functions *sqlite)
{
    const vfs *first = sqlite->vfs_find(NULL);
    bool is_any_watched = false;
    for (int i = 0; i < NAMES; i++) {
        vfs *base = sqlite->vfs_find(names[i]);
        bool is_watched = base && is_ours(base);
        if (base && !is_watched && is_sqlites_own(sqlite, base)) {
            int number = front_of(sqlite, base);
            is_watched = number < FRONTS &&
                         sqlite->vfs_register(&fronts.known[number].ours, base == first) == 0;
        }
        is_any_watched |= is_watched;
    }
    if (is_any_watched) {
        __atomic_store_n(&fronts.is_watching, true, __ATOMIC_RELAXED);
    }
    return is_any_watched;
}

bool qp_vfs_sees_connection(const qp_sqlite_functions *sqlite, void *db)
{
    int (*control)(void *, const char *, int, void *) = sqlite->file_control;
    void *file = NULL, *journal = NULL;
    vfs *v = NULL;
    if (!control || control(db, "main", FILE_POINTER, &file) != 0 ||
        control(db, "main", VFS_POINTER, &v) != 0 || !v || !qp_file_has_table(file)) {
        return true; /* a database in memory has no file */
    }
    if (!qp_file_watch(file)) {
        /* SQLite's "memdb" works on no file. A VFS of the program's own may work through ours. */
        const qp_active *call = qp_file_call_here();
        return is_sqlites_own(sqlite, v) || (call && call->work.opened);
    }
    if (is_ours(v)) {
        return true;
    }
    if (!qp_locks_of(file)) {
        qp_locks_opened(file, sqlite->db_filename(db, "main"));
    }
    /* A write-ahead log is open already; a rollback journal is opened again by each transaction, by
     * SQLite's own VFS, which the connection keeps. */
    return control(db, "main", JOURNAL_POINTER, &journal) == 0 && qp_file_watch(journal);
}

void qp_vfs_unwatch(void)
{
    __atomic_store_n(&fronts.is_watching, false, __ATOMIC_RELAXED);
    for (int i = 0; i < fronts.count; i++) {
        const qp_sqlite_functions *sqlite = fronts.known[i].sqlite;
        vfs *ours = &fronts.known[i].ours;
        if (sqlite->vfs_find(NULL) == ours) {
            /* First, so that the default is never another one that was registered meanwhile. */
            sqlite->vfs_register(fronts.known[i].base, true);
        }
        sqlite->vfs_unregister(ours);
    }
}
