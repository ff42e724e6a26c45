#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "runtime/allocation.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

#ifdef QP_FAULT_INJECTION
static long successes_left = -1;

void qp_fail_allocation_after(long successes)
{
    successes_left = successes;
}
#endif

static bool must_fail(void)
{
#ifdef QP_FAULT_INJECTION
    return successes_left >= 0 && successes_left-- == 0;
#else
    return false;
#endif
}

void *qp_allocate(size_t count, size_t size)
{
    if (must_fail()) {
        return NULL;
    }
    /* calloc of a large table returns untouched pages: memory is used only as the table fills. */
    return calloc(count, size);
}

void qp_free(void *memory)
{
    free(memory);
}

void *qp_map_zeros(size_t bytes)
{
    if (must_fail()) {
        return NULL;
    }
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

void qp_map_reset(void *start, size_t bytes)
{
    void *again = mmap(start, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (again == MAP_FAILED) { /* the old mapping is still there */
        memset(start, 0, bytes);
    }
}
