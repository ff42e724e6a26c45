#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall, O_NOFOLLOW */
#endif
#include "sharing/parts.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "memory/region.h"
#include "runtime/compiler.h"
#include "sharing/region_file.h"
#include "sharing/shared_region.h"

static struct {
    char prefix[QP_SHARED_PATH_BYTES];
    uint32_t count; /* number of the last part */
    uint32_t first; /* number of the first part that was not removed */
    int error;
} parts;

void qp_parts_set_prefix(const char *prefix)
{
    size_t bytes = strlen(prefix) + 1;
    bool fits = bytes <= sizeof parts.prefix;
    memcpy(parts.prefix, fits ? prefix : "", fits ? bytes : 1);
    parts.count = 0;
    parts.first = 1;
    if (qp_head) { /* otherwise nothing is recorded, and there is no region */
        qp_head->part_begun = qp_head->part_ended = 0;
    }
}

uint32_t qp_parts_next_number(void)
{
    return parts.count + 1;
}

void qp_part_end(void)
{
    qp_release_store(&qp_head->part_ended, qp_head->part_begun);
}

int qp_part_write_errno(void)
{
    return parts.error;
}

#ifdef __linux__
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PART_PATH_BYTES = QP_SHARED_PATH_BYTES + 32, NAME_TRIES = 8 };

static void part_path(char path[PART_PATH_BYTES], uint32_t number)
{
    snprintf(path, PART_PATH_BYTES, "%s-%u.live", parts.prefix, (unsigned)number);
}

static bool write_field(int file, const uint32_t *value, size_t at)
{
    return qp_write_at(file, (const char *)value, sizeof *value, (off_t)at);
}

static bool write_part(const char *path, qp_region_state state)
{
    const uint32_t its_state = state;
    int flags = O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_WRONLY;
    errno = EFBIG; /* open does not set errno if the file size limit is too low */
    int file = qp_move_above_stdio(open(path, flags, 0600));
    if (file < 0) {
        return false;
    }
    bool written = fchmod(file, 0600) == 0 && qp_region_write(file) &&
                   write_field(file, &its_state, offsetof(qp_header, state));
    int error = errno;
    if (close(file) != 0 || !written) {
        unlink(path);
        errno = error;
        return false;
    }
    return true;
}

/* Renames a part, unless there is already a file with that name. */
static bool rename_part(const char *unfinished, const char *path)
{
#if defined(SYS_renameat2)
    enum { NO_REPLACE = 1 }; /* RENAME_NOREPLACE, which some headers lack */
    if (syscall(SYS_renameat2, AT_FDCWD, unfinished, AT_FDCWD, path, NO_REPLACE) == 0) {
        return true;
    }
    /* These errors mean that the file system or a sandbox does not support the system call. */
    if (errno != EINVAL && errno != ENOSYS && errno != EPERM) {
        return false;
    }
#endif
    return access(path, F_OK) != 0 && rename(unfinished, path) == 0;
}

/* Writes a part with the next number whose name is free. */
static bool write_next_part(qp_region_state state)
{
    char path[PART_PATH_BYTES], unfinished[PART_PATH_BYTES + 8];
    parts.error = parts.prefix[0] ? EEXIST : ENAMETOOLONG;
    for (int tries = 0; parts.error == EEXIST && tries < NAME_TRIES; tries++) {
        uint32_t number = parts.count + 1, before = qp_head->part_begun;
        part_path(path, number);
        snprintf(unfinished, sizeof unfinished, "%s.new", path);
        if (write_part(unfinished, state)) {
            /* The number is stored first, because the part counts as soon as the file has its
             * name. */
            qp_release_store(&qp_head->part_begun, number);
            if (rename_part(unfinished, path)) {
                parts.count = number;
                parts.error = 0;
                return true;
            }
            parts.error = errno;
            unlink(unfinished);
            qp_release_store(&qp_head->part_begun, before);
        } else {
            parts.error = errno;
        }
        parts.count += parts.error == EEXIST;
    }
    return false;
}

bool qp_part_write(void)
{
    return write_next_part(QP_REGION_PART);
}

bool qp_part_write_last(void)
{
    return write_next_part(QP_REGION_ENDED);
}

bool qp_parts_remove_before(uint32_t number)
{
    bool any = false;
    for (; parts.first < number; parts.first++) {
        char path[PART_PATH_BYTES];
        part_path(path, parts.first);
        any = unlink(path) == 0 || any;
    }
    return any;
}
#else
bool qp_part_write(void)
{
    return false;
}

bool qp_part_write_last(void)
{
    return false;
}

bool qp_parts_remove_before(uint32_t number)
{
    (void)number;
    return false;
}
#endif
