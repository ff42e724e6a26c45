#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dladdr */
#endif
#include "counters/vfs.h"

#include <dlfcn.h>
#include <stdbool.h>
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
    OPEN_CREATE = 0x04,
    OPEN_MAIN_DB = 0x100,
    VFSS = 8 * QP_PRIVATE_LIBRARIES
};

/* The VFSs whose functions are exchanged; entries stay, for calls that are in progress. */
static struct {
    struct {
        vfs *vfs; /* SQLite's own: static memory of a library that is never unloaded */
        int (*open)(vfs *, const char *, void *, int, int *);
        int (*delete)(vfs *, const char *, int);
    } known[VFSS];
    int count; /* changed with the GIL, before what it counts is in use */
} vfss;

/* The entry of a VFS; without one, the number of entries. */
static int place_of(const vfs *v)
{
    int place = 0;
    while (place < vfss.count && vfss.known[place].vfs != v) {
        place++;
    }
    return place;
}

static int watched_open(vfs *v, const char *name, void *f, int flags, int *out_flags)
{
    qp_file_work *work = flags & OPEN_CREATE ? qp_file_work_here() : NULL;
    uint64_t start = qp_clock_ticks();
    int result = vfss.known[place_of(v)].open(v, name, f, flags, out_flags);
    if (work) { /* a journal is made */
        work->sums.write_ticks += qp_clock_elapsed(start, qp_clock_ticks());
    }
    qp_file_watch(f);
    if (result == 0 && (flags & OPEN_MAIN_DB)) {
        /* Any other name is a value in a statement, which is no reader's business. */
        const qp_active *call = qp_file_call_here();
        qp_locks_opened(f, call && call->operation == QP_CONNECT ? name : "(attached)");
    }
    return result;
}

static int watched_delete(vfs *v, const char *name, int syncs_directory)
{
    qp_file_work *work = qp_file_work_here();
    uint64_t start = qp_clock_ticks();
    int result = vfss.known[place_of(v)].delete(v, name, syncs_directory);
    int64_t ticks = qp_clock_elapsed(start, qp_clock_ticks());
    if (work && syncs_directory) {
        work->sums.sync_ticks += ticks;
        work->sums.syncs++;
    } else if (work) {
        work->sums.write_ticks += ticks;
    }
    return result;
}

/* Whether a VFS' memory may be written: a read(2) into it writes the bytes that it has already. */
static bool is_writable(vfs *v)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    size_t bytes = sizeof v->open;
    bool writable = write(ends[1], &v->open, bytes) == (ssize_t)bytes &&
                    read(ends[0], &v->open, bytes) == (ssize_t)bytes;
    close(ends[0]);
    close(ends[1]);
    return writable;
}

/* Exchanges the functions of one VFS. */
static void watch(vfs *v)
{
    int place = place_of(v);
    if (v->open == watched_open || place == VFSS || !is_writable(v)) {
        return;
    }
    vfss.known[place].vfs = v;
    vfss.known[place].open = v->open;
    vfss.known[place].delete = v->delete;
    vfss.count += place == vfss.count;
    __atomic_store_n(&v->open, watched_open, __ATOMIC_RELEASE);
    __atomic_store_n(&v->delete, watched_delete, __ATOMIC_RELEASE);
}

/* Whether two functions are of one library: a VFS of the program's own may have any name. */
static bool same_library(const void *one, const void *other)
{
    Dl_info of_one, of_other;
    return dladdr(one, &of_one) && dladdr(other, &of_other) &&
           of_one.dli_fbase == of_other.dli_fbase;
}

bool qp_vfs_watch(const qp_sqlite_functions *sqlite)
{
    bool is_any_watched = false;
    static const char *const names[] = {"unix", "unix-none", "unix-dotfile", "unix-excl"};
    void *find = NULL;
    memcpy(&find, &sqlite->vfs_find, sizeof find);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        vfs *own = sqlite->vfs_find(names[i]);
        void *functions[2] = {NULL, NULL};
        if (own) {
            memcpy(&functions[0], &own->open, sizeof functions[0]);
            memcpy(&functions[1], &own->delete, sizeof functions[1]);
        }
        /* What another tool has put there may call ours. */
        if (own && same_library(functions[0], find) && same_library(functions[1], find)) {
            watch(own);
            is_any_watched |= own->open == watched_open;
        }
    }
    return is_any_watched;
}

void qp_vfs_watch_connection(const qp_sqlite_functions *sqlite, void *db)
{
    int (*control)(void *, const char *, int, void *) = sqlite->file_control;
    void *file = NULL, *journal = NULL;
    vfs *v = NULL;
    if (!control || control(db, "main", VFS_POINTER, &v) != 0 || place_of(v) == vfss.count ||
        control(db, "main", FILE_POINTER, &file) != 0 ||
        control(db, "main", JOURNAL_POINTER, &journal) != 0) {
        return;
    }
    qp_file_watch(file);
    qp_file_watch(journal);
    if (!qp_locks_of(file)) {
        qp_locks_opened(file, sqlite->db_filename(db, "main"));
    }
}

void qp_vfs_unwatch(void)
{
    for (int i = 0; i < vfss.count; i++) {
        vfs *v = vfss.known[i].vfs;
        if (v->open == watched_open) {
            __atomic_store_n(&v->open, vfss.known[i].open, __ATOMIC_RELEASE);
        }
        if (v->delete == watched_delete) {
            __atomic_store_n(&v->delete, vfss.known[i].delete, __ATOMIC_RELEASE);
        }
    }
}
