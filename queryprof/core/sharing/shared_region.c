#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* mremap */
#endif
#include "sharing/shared_region.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "memory/region.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/index.h"
#include "sharing/region_file.h"
#include "threads/thread_usage.h"

bool qp_share_awaited;

static struct {
    char directories[QP_SHARED_PATH_BYTES];
    char name[QP_SHARED_PATH_BYTES];
    char path[QP_SHARED_PATH_BYTES]; /* path of the file; empty if none */
    bool may_have_room_later;        /* the process had no free descriptor */
    bool is_lost;                    /* this forked child had no memory for a copy of the region */
} shared;

const char *qp_region_path(void)
{
    return shared.path;
}

#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* statfs(2); <linux/magic.h> is missing where only the C library's headers are installed. */
#define TMPFS 0x01021994

/* Creates a file in a directory: without a name or, if that is impossible, with the region's name.
 * Only the file's owner may read the file, whatever the program's umask is. Returns the descriptor
 * (owned by the caller), or -1 on failure. */
static int create_file(const char *directory, bool *is_named)
{
    int file = -1;
#ifdef O_TMPFILE
    file = open(directory, O_TMPFILE | O_CLOEXEC | O_RDWR, 0600);
#endif
    *is_named = file < 0;
    if (*is_named) {
        file = open(shared.path, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_RDWR, 0600);
    }
    if (file < 0) {
        shared.may_have_room_later |= errno == EMFILE || errno == ENFILE;
        return -1;
    }
    file = qp_move_above_stdio(file);
    if (file >= 0 && fchmod(file, 0600) != 0) {
        close(file);
        file = -1;
    }
    if (file < 0 && *is_named) {
        unlink(shared.path);
    }
    return file;
}

/* Gives a written file its name, so that readers find only complete files. */
static bool name_file(int file)
{
    char opened[64];
    snprintf(opened, sizeof opened, "/proc/self/fd/%d", file);
    return linkat(AT_FDCWD, opened, AT_FDCWD, shared.path, AT_SYMLINK_FOLLOW) == 0;
}

/* Creates a file in a directory on a memory file system. Returns the descriptor (owned by the
 * caller), or -1 on failure. Sets `*is_named` if the file already has its name. */
static int create_memory_file(const char *directory, size_t length, bool *is_named)
{
    char place[QP_SHARED_PATH_BYTES];
    uint64_t random = qp_clock_ticks() * QP_GOLDEN_RATIO ^ (uint64_t)getpid();
    int needed = snprintf(shared.path, sizeof shared.path, "%.*s/%s-%ld-%08x", (int)length,
                          directory, shared.name, (long)getpid(), (unsigned)(random >> 32));
    struct statfs facts;
    if (needed >= (int)sizeof shared.path) {
        return -1;
    }
    snprintf(place, sizeof place, "%.*s", (int)length, directory);
    int file = create_file(place, is_named);
    if (file >= 0 && (fstatfs(file, &facts) != 0 || facts.f_type != TMPFS)) {
        if (*is_named) {
            unlink(shared.path);
        }
        close(file);
        return -1;
    }
    return file;
}

/* Replaces the region's memory with a file that has the same content. */
static bool share_file(int file, bool *is_named)
{
    qp_thread_usage_lock(); /* no other thread writes to the memory now */
    bool is_shared = qp_region_write(file) && (*is_named = *is_named || name_file(file)) &&
                     mmap(qp_head, qp_region_bytes(), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    if (is_shared) {
        qp_region_remapped(true);
    }
    qp_thread_usage_unlock();
    return is_shared;
}

/* Makes the region private memory again, with the rows of the first `tables` tables. Safe in a
 * forked child: takes no lock, and reads no row that the parent adds concurrently. Returns false if
 * out of memory; the region is then empty. */
static bool make_private(int tables)
{
    size_t bytes = qp_region_bytes();
    char *memory = (char *)qp_head;
    char *own = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (own == MAP_FAILED) { /* replace the parent's memory with empty memory */
        mmap(memory, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        return false;
    }
    memcpy(own, memory, (size_t)(qp_table_start[0] - memory));
    for (int i = 0; i < tables; i++) {
        memcpy(own + (qp_table_start[i] - memory), qp_table_start[i], qp_table_bytes((qp_table)i));
    }
    if (mremap(own, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory) == MAP_FAILED) {
        mmap(memory, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        munmap(own, bytes);
        return false;
    }
    return true;
}

void qp_region_unshare(void)
{
    qp_share_awaited = false;
    if (shared.path[0]) {
        qp_thread_usage_lock();
        make_private(QP_TABLES);
        qp_region_remapped(false);
        qp_thread_usage_unlock();
        shared.path[0] = 0;
    }
}

/* Runs in a forked child before anything else: separates its sums from the parent's. */
static void separate_from_parent(void)
{
    if (shared.path[0]) {
        shared.is_lost = !make_private(QP_FIRST_SUMS);
        qp_region_remapped_in_child();
        shared.path[0] = 0;
    }
}

bool qp_region_is_lost(void)
{
    bool is_lost = shared.is_lost;
    shared.is_lost = false;
    return is_lost;
}

void qp_region_retry_share(void)
{
    qp_share_awaited = qp_share_awaited || (shared.may_have_room_later && !shared.path[0]);
}

void qp_region_share(void)
{
    static bool watches_forks;
    qp_share_awaited = false;
    shared.may_have_room_later = false;
    if (!watches_forks) {
        watches_forks = pthread_atfork(NULL, NULL, separate_from_parent) == 0;
    }
    if (shared.path[0] || !watches_forks) {
        return;
    }
    qp_region_write_identity();
    qp_written_bytes before = qp_written_so_far;
    const char *directory = shared.directories;
    while (*directory) {
        size_t length = strcspn(directory, "\n");
        bool is_named = false;
        int file = create_memory_file(directory, length, &is_named);
        bool is_shared = file >= 0 && share_file(file, &is_named);
        if (file >= 0) {
            close(file);
        }
        if (is_shared) {
            qp_written_exclude_from_usage(before);
            return;
        }
        if (file >= 0 && is_named) {
            unlink(shared.path);
        }
        directory += length + (directory[length] != 0);
    }
    shared.path[0] = 0;
}

static bool copy_path(char to[QP_SHARED_PATH_BYTES], const char *from)
{
    size_t bytes = strlen(from) + 1;
    bool fits = bytes <= QP_SHARED_PATH_BYTES;
    memcpy(to, fits ? from : "", fits ? bytes : 1);
    return fits && *from;
}

void qp_region_set_directories(const char *directories, const char *name)
{
    bool is_wanted = copy_path(shared.directories, directories) && copy_path(shared.name, name);
    qp_share_awaited = is_wanted && !shared.path[0];
    shared.may_have_room_later = false;
}

#else
void qp_region_share(void)
{
    qp_share_awaited = false;
}

void qp_region_set_directories(const char *directories, const char *name)
{
    (void)directories;
    (void)name;
}

void qp_region_unshare(void) {}

void qp_region_retry_share(void) {}

bool qp_region_is_lost(void)
{
    return false;
}
#endif
