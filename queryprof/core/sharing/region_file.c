#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pwrite, ftruncate, O_CLOEXEC */
#endif
#include "sharing/region_file.h"

#include "memory/region.h"
#include "threads/thread_usage.h"

qp_written_bytes qp_written_so_far;

void qp_written_exclude_from_usage(qp_written_bytes before)
{
    qp_thread_usage_exclude(qp_written_so_far.bytes - before.bytes,
                            qp_written_so_far.calls - before.calls);
}

#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

bool qp_write_at(int file, const char *bytes, size_t length, long long at)
{
    while (length) {
        ssize_t written = pwrite(file, bytes, length, (off_t)at);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        bytes += written;
        length -= (size_t)written;
        at += written;
        qp_written_so_far.bytes += written;
        qp_written_so_far.calls++;
    }
    return true;
}

bool qp_region_fits_file_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= qp_region_bytes());
}

bool qp_region_prepare_file(int file)
{
    return qp_region_fits_file_limit() && ftruncate(file, (off_t)qp_region_bytes()) == 0;
}

bool qp_region_write(int file)
{
    const char *memory = (const char *)qp_head;
    bool written = qp_region_prepare_file(file) &&
                   qp_write_at(file, memory, (size_t)(qp_table_start[0] - memory), 0);
    for (int i = 0; written && i < QP_TABLES; i++) {
        size_t bytes = (qp_table_bytes((qp_table)i) + QP_PAGE - 1) / QP_PAGE * QP_PAGE;
        written = qp_write_at(file, qp_table_start[i], bytes, qp_table_start[i] - memory);
    }
    return written;
}

int qp_move_above_stdio(int file)
{
    if (file < 0 || file > 2) {
        return file;
    }
    int higher = fcntl(file, F_DUPFD_CLOEXEC, 3);
    close(file);
    return higher;
}

static size_t read_file(const char *path, char *text, size_t bytes)
{
    int file = qp_move_above_stdio(open(path, O_RDONLY | O_CLOEXEC));
    ssize_t size = file < 0 ? -1 : read(file, text, bytes - 1);
    if (file >= 0) {
        close(file);
    }
    text[size > 0 ? size : 0] = 0;
    return size > 0 ? (size_t)size : 0;
}

void qp_region_write_identity(void)
{
    char text[1024];
    qp_head->pid = getpid();
    qp_head->start_time = 0;
    read_file("/proc/self/stat", text, sizeof text);
    const char *at = strrchr(text, ')'); /* the name may contain any character */
    for (int field = 2; at && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    if (at) {
        qp_head->start_time = strtoll(at, NULL, 10);
    }
    struct stat namespace;
    qp_head->pid_namespace = stat("/proc/self/ns/pid", &namespace) == 0 ? namespace.st_ino : 0;
    size_t size = read_file("/proc/sys/kernel/random/boot_id", text, sizeof qp_head->boot);
    memset(qp_head->boot, 0, sizeof qp_head->boot);
    memcpy(qp_head->boot, text, size && text[size - 1] == '\n' ? size - 1 : size);
}
#else
bool qp_write_at(int file, const char *bytes, size_t length, long long at)
{
    (void)file;
    (void)bytes;
    (void)length;
    (void)at;
    return false;
}

bool qp_region_fits_file_limit(void)
{
    return false;
}

bool qp_region_prepare_file(int file)
{
    (void)file;
    return false;
}

void qp_region_write_identity(void) {}
#endif
