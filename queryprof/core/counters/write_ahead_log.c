#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pread and O_CLOEXEC under -std=c11 */
#endif
#include "counters/write_ahead_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_PATH_BYTES = 4096,
    HEADER_BYTES = 32,
    HEADER_SALTS = 16, /* offset of the salts in the header */
    PAGE_BYTES = 8,
    FRAME_BYTES = 24, /* size of the header before each page */
    FRAME_SALTS = 8,
    SALTS_BYTES = 8
};

static bool has_salts(int log, int64_t frame, int64_t each, const unsigned char *salts)
{
    unsigned char found[SALTS_BYTES];
    off_t at = (off_t)(HEADER_BYTES + frame * each + FRAME_SALTS);
    return pread(log, found, sizeof found, at) == (ssize_t)sizeof found &&
           !memcmp(found, salts, sizeof found);
}

/* Returns the bytes in use of an open log: its first frames, whose salts match the header. */
static int64_t used_bytes(int log)
{
    unsigned char header[HEADER_BYTES];
    struct stat found;
    if (pread(log, header, sizeof header, 0) != (ssize_t)sizeof header || fstat(log, &found)) {
        return 0;
    }
    const unsigned char *page = header + PAGE_BYTES; /* big-endian */
    int64_t each = FRAME_BYTES + ((int64_t)page[0] << 24 | page[1] << 16 | page[2] << 8 | page[3]);
    int64_t used = 0, all = (found.st_size - HEADER_BYTES) / each;
    while (used < all) { /* frames before `used` have the salts, frames from `all` on do not */
        int64_t middle = used + (all - used) / 2;
        if (has_salts(log, middle, each, header + HEADER_SALTS)) {
            used = middle + 1;
        } else {
            all = middle;
        }
    }
    return used ? HEADER_BYTES + used * each : 0;
}

int64_t qp_wal_used_bytes(const char *database)
{
    char path[MAX_PATH_BYTES];
    int error = errno;
    int length = snprintf(path, sizeof path, "%s-wal", database);
    bool is_path = database[0] == '/' && length < MAX_PATH_BYTES;
    int log = is_path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    int64_t bytes = log < 0 ? 0 : used_bytes(log);
    if (log >= 0) {
        close(log);
    }
    errno = error;
    return bytes;
}
