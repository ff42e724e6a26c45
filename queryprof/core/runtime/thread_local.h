/* The data of the running operating-system thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#if defined(__has_include)
#if __has_include(<features.h>)
#include <features.h> /* identifies the C library */
#endif
#endif

#if defined(__GLIBC__)
/* One load instead of a call to __tls_get_addr; glibc reserves room for such small variables, musl
 * does not. */
#define QP_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#else
#define QP_THREAD_LOCAL __thread
#endif

struct qp_thread;
struct qp_submitter;

typedef struct {
    struct qp_thread *thread; /* record of the thread; owned by the pool of records */
    struct qp_submitter
        *submitter; /* submitter of the innermost work that the thread runs; owned by the work */
    bool muted;     /* true during the profiler's own work, which is not recorded */
    bool has_own_files;       /* the thread has its own table of files */
    uint32_t usage_recording; /* the recording of usage_row */
    uint32_t usage_row;       /* the row of this thread's usage; UINT32_MAX if none */
} qp_local;

extern QP_THREAD_LOCAL qp_local qp_here;
