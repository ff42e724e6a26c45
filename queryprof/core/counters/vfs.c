#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dladdr, pread */
#endif
#include "counters/vfs.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

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
    /* more follows */
} vfs;

enum {
    FILE_POINTER = 7,
    VFS_POINTER = 27,
    JOURNAL_POINTER = 28,
    OPEN_READONLY = 0x01,
    OPEN_CREATE = 0x04,
    OPEN_MAIN_DB = 0x100,
    OPEN_MAIN_JOURNAL = 0x800,
    MAX_FILE_BYTES = 4096, /* maximum size of SQLite's own sqlite3_file; 120 bytes today */
};

static const char *const names[] = {"unix", "unix-none", "unix-dotfile", "unix-excl"};

enum { NAMES = sizeof names / sizeof *names, VFSS = NAMES * QP_WATCHED_LIBRARIES };

/* The VFSs whose functions are exchanged. Entries are never removed, because calls in progress and
 * copies of a VFS may use our functions. */
static struct {
    struct {
        vfs *vfs; /* SQLite's own: static memory of a library that is never unloaded */
        int (*open)(vfs *, const char *, void *, int, int *);
        int (*delete)(vfs *, const char *, int);
    } known[VFSS];
    int count;        /* changed with the GIL, before the counted entry is in use */
    bool is_watching; /* if false, our functions only forward */
} vfss;

static int do_open(int number, vfs *v, const char *name, void *f, int flags, int *out_flags)
{
    if (!__atomic_load_n(&vfss.is_watching, __ATOMIC_RELAXED)) {
        return vfss.known[number].open(v, name, f, flags, out_flags);
    }
    qp_file_work *work = flags & OPEN_CREATE ? qp_running_call_file_work() : NULL;
    uint64_t start = qp_clock_ticks();
    int result = vfss.known[number].open(v, name, f, flags, out_flags);
    if (work) { /* the call creates a journal */
        work->sums.write_ticks += qp_elapsed_ticks(start, qp_clock_ticks());
    }
    if (qp_file_watch(f) && result == 0 && (flags & OPEN_MAIN_DB)) {
        /* Any other name is a value in a statement, which may be a secret. */
        qp_active_call *call = qp_running_call_here();
        qp_locks_file_opened(f, name, call && call->operation == QP_CONNECT);
        if (call) {
            call->work.any = call->work.opened = true;
        }
    }
    return result;
}

static int do_delete(int number, vfs *v, const char *name, int syncs_directory)
{
    qp_file_work *work = qp_running_call_file_work();
    uint64_t start = qp_clock_ticks();
    int result = vfss.known[number].delete(v, name, syncs_directory);
    int64_t ticks = qp_elapsed_ticks(start, qp_clock_ticks());
    if (work && syncs_directory) {
        work->sums.sync_ticks += ticks;
        work->sums.syncs++;
    } else if (work) {
        work->sums.write_ticks += ticks;
    }
    return result;
}

/* clang-format off */
#define EACH_VFS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
/* clang-format on */

#define DEFINE_FUNCTIONS(n)                                                           \
    static int open_##n(vfs *v, const char *name, void *f, int flags, int *out_flags) \
    {                                                                                 \
        return do_open(n, v, name, f, flags, out_flags);                              \
    }                                                                                 \
    static int delete_##n(vfs *v, const char *name, int syncs_directory)              \
    {                                                                                 \
        return do_delete(n, v, name, syncs_directory);                                \
    }

EACH_VFS(DEFINE_FUNCTIONS)

#define FUNCTIONS(n) {.open = open_##n, .delete = delete_##n},

static const vfs ours[] = {EACH_VFS(FUNCTIONS)};
_Static_assert(sizeof ours / sizeof *ours == VFSS, "a VFS has no functions");

/* Returns whether two functions are in the same library. The name of a VFS does not show its owner,
 * because the program may give its own VFS any name. */
static bool is_same_library(const void *one, const void *other)
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
    return is_same_library(open, find) && is_same_library(delete, find);
}

/* Finds the tables of functions that a VFS gives its files, by opening a file for reading. The file
 * must not be a database, because closing a file drops the process's locks on it. */
static bool add_file_tables(vfs *base)
{
    static const char name[] = "/proc/self/stat\0\0"; /* ends with two zero bytes, as SQLite's
                                                       * file names do */
    static const int flags[] = {OPEN_READONLY | OPEN_MAIN_DB, OPEN_READONLY | OPEN_MAIN_JOURNAL};
    _Alignas(max_align_t) char memory[MAX_FILE_BYTES];
    struct {
        const struct {
            int version;
            int (*close)(void *);
        } *methods;
    } *f = (void *)memory;
    bool is_known = base->file_bytes <= MAX_FILE_BYTES;
    for (size_t i = 0; is_known && i < sizeof flags / sizeof *flags; i++) {
        int out_flags = 0;
        memset(memory, 0, sizeof memory);
        is_known = base->open(base, name, f, flags[i], &out_flags) == 0 && f->methods &&
                   qp_file_table_add(f->methods);
        if (f->methods) {
            f->methods->close(f);
        }
    }
    return is_known;
}

/* Returns whether a VFS's memory is writable. Tries it by reading the bytes that are already there
 * from the process's own memory file: read(2) refuses a buffer that is not writable. */
static bool is_writable(vfs *v)
{
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (memory < 0) {
        return false;
    }
    void *copy = NULL; /* an emulator may number addresses differently: try it here first */
    void *before = (void *)v->open;
    off_t place = (off_t)(uintptr_t)&v->open;
    bool writable = pread(memory, &copy, sizeof copy, place) == (ssize_t)sizeof copy &&
                    copy == before &&
                    pread(memory, &v->open, sizeof v->open, place) == (ssize_t)sizeof v->open;
    close(memory);
    return writable;
}

static bool has_our_functions(const vfs *v)
{
    for (int i = 0; i < vfss.count; i++) {
        if (v->open == ours[i].open) {
            return true;
        }
    }
    return false;
}

/* Returns the entry of one of SQLite's VFSs, and adds it if it is new; VFSS if the VFS cannot be
 * watched. */
static int find_or_add_vfs(vfs *own)
{
    int number = 0;
    while (number < vfss.count && vfss.known[number].vfs != own) {
        number++;
    }
    if (number == vfss.count && number < VFSS && add_file_tables(own) && is_writable(own)) {
        vfss.known[number].vfs = own;
        vfss.known[number].open = own->open;
        vfss.known[number].delete = own->delete;
        vfss.count++;
    }
    return number < vfss.count ? number : VFSS;
}

bool qp_vfs_watch(const qp_sqlite_functions *sqlite)
{
    bool is_any_watched = false;
    for (int i = 0; i < NAMES; i++) {
        vfs *own = sqlite->vfs_find(names[i]);
        /* Skip a VFS with another tool's functions, which may call ours. */
        if (own && !has_our_functions(own) && is_sqlites_own(sqlite, own)) {
            int number = find_or_add_vfs(own);
            if (number < VFSS) {
                __atomic_store_n(&own->open, ours[number].open, __ATOMIC_RELEASE);
                __atomic_store_n(&own->delete, ours[number].delete, __ATOMIC_RELEASE);
            }
        }
        is_any_watched |= own && has_our_functions(own);
    }
    if (is_any_watched) {
        __atomic_store_n(&vfss.is_watching, true, __ATOMIC_RELAXED);
    }
    return is_any_watched;
}

bool qp_vfs_watch_connection(const qp_sqlite_functions *sqlite, void *db)
{
    int (*control)(void *, const char *, int, void *) = sqlite->file_control;
    void *file = NULL, *journal = NULL;
    vfs *v = NULL;
    if (!control || control(db, "main", FILE_POINTER, &file) != 0 ||
        control(db, "main", VFS_POINTER, &v) != 0 || !v || !qp_file_has_table(file)) {
        return true; /* a database in memory has no file */
    }
    const qp_active_call *call = qp_running_call_here();
    if (!qp_file_watch(file)) {
        /* SQLite's "memdb" uses no file. The program's own VFS may call ours. */
        return is_sqlites_own(sqlite, v) || (call && call->work.opened);
    }
    if (!qp_locks_of_file(file)) {
        qp_locks_file_opened(file, sqlite->db_filename(db, "main"), true);
    }
    if (control(db, "main", JOURNAL_POINTER, &journal) == 0) {
        qp_file_watch(journal);
    }
    return has_our_functions(v) || (call && call->work.opened);
}

void qp_vfs_unwatch(void)
{
    __atomic_store_n(&vfss.is_watching, false, __ATOMIC_RELAXED);
    for (int i = 0; i < vfss.count; i++) {
        vfs *own = vfss.known[i].vfs;
        if (own->open == ours[i].open) {
            __atomic_store_n(&own->open, vfss.known[i].open, __ATOMIC_RELEASE);
        }
        if (own->delete == ours[i].delete) {
            __atomic_store_n(&own->delete, vfss.known[i].delete, __ATOMIC_RELEASE);
        }
    }
}
