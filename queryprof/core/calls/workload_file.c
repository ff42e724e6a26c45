#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* O_NOFOLLOW */
#endif
#include "calls/workload_file.h"

#include <Python.h>
#include <stdio.h>
#include <string.h>

#include "runtime/allocation.h"
#include "runtime/clock.h"

enum {
    BUFFER_BYTES = 1 << 20,
    PATH_BYTES = 1024,
    NAME_BYTES = 64 /* maximum length of a path after the prefix */
};

static const int64_t FLUSH_NS = 1000000000;

bool qp_workload_on;

static struct {
    char prefix[PATH_BYTES];
    char path[PATH_BYTES + NAME_BYTES]; /* path of this process's file; empty if none yet */
    char *buffer;                       /* owned */
    size_t used;
    int64_t written;
    int64_t most_bytes;
    uint64_t flushed_ticks;
} file;

#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Appends bytes to the file. Returns false if the file cannot be written. */
static bool append(const char *bytes, size_t length)
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
    bool is_new = !file.path[0];
    if (is_new) {
        snprintf(file.path, sizeof file.path, "%s%ld-%lld", file.prefix, (long)getpid(),
                 (long long)qp_ticks_to_unix_ns(qp_clock_ticks()));
    }
    int descriptor = open(file.path, flags | (is_new ? O_EXCL : 0), 0600);
    bool good = descriptor >= 0;
    while (good && length) {
        ssize_t done = write(descriptor, bytes, length);
        if (done < 0 && errno != EINTR) {
            good = false;
        } else if (done > 0) {
            bytes += done;
            length -= (size_t)done;
            file.written += done;
        }
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    return good;
}
#else
static bool append(const char *Py_UNUSED(bytes), size_t Py_UNUSED(length))
{
    return false;
}
#endif

void qp_workload_flush(void)
{
    if (file.used && !append(file.buffer, file.used)) {
        qp_workload_on = false; /* a full disk: the file stays, and its last record may be cut */
    }
    file.used = 0;
    file.flushed_ticks = qp_clock_ticks();
}

void qp_workload_put(const void *bytes, size_t length)
{
    if (length > BUFFER_BYTES - file.used) {
        qp_workload_flush();
    }
    if (length > BUFFER_BYTES) {
        qp_workload_on = qp_workload_on && append(bytes, length);
        return;
    }
    memcpy(file.buffer + file.used, bytes, length);
    file.used += length;
}

void qp_workload_put_byte(char byte)
{
    qp_workload_put(&byte, 1);
}

void qp_workload_put_number(uint32_t number)
{
    qp_workload_put(&number, sizeof number);
}

void qp_workload_put_bytes(char kind, const char *bytes, Py_ssize_t length)
{
    qp_workload_put_byte(kind);
    qp_workload_put_number((uint32_t)length);
    qp_workload_put(bytes, (size_t)length);
}

bool qp_workload_is_full(void)
{
    return file.written + (int64_t)file.used >= file.most_bytes;
}

bool qp_workload_flush_is_due(uint64_t now_ticks)
{
    return qp_ticks_to_ns(qp_elapsed_ticks(file.flushed_ticks, now_ticks)) > FLUSH_NS;
}

void qp_workload_begin_file(void)
{
    file.path[0] = 0;
    file.used = 0;
    file.written = 0;
    file.flushed_ticks = qp_clock_ticks();
}

bool qp_workload_begin(const char *prefix, int64_t most_bytes)
{
    file.buffer = file.buffer ? file.buffer : qp_allocate(1, BUFFER_BYTES);
    size_t bytes = strlen(prefix) + 1;
    if (!file.buffer || bytes > sizeof file.prefix) {
        return false;
    }
    memcpy(file.prefix, prefix, bytes);
    file.most_bytes = most_bytes;
    qp_workload_begin_file();
    return true;
}
