/* A step of a running event loop (see steps.h). */
#pragma once

#include <Python.h>
#include <stdint.h>

#include "loops/loops.h"
#include "loops/step_queries.h"

enum { QP_STEP_SITES = 8 };

/* A call path at which the watchdog saw a step. */
typedef struct {
    uint32_t path;
    uint32_t stack;
    int hits;
} qp_step_site;

typedef struct qp_step {
    struct qp_step *outer; /* for a free step: the next free step */
    qp_running_loop *running_loop;
    qp_step_row *sums; /* NULL if steps cannot be seen, only the lag of the loop */
    uint64_t number;
    PyObject *callback; /* asyncio callback that the step runs; owned by the caller; or NULL */
    uint64_t start_ticks;
    Py_ssize_t waiting; /* number of callbacks that were ready when the step began */
    int64_t gc_ticks_before;
    int64_t gil_ticks;  /* time that the watchdog waited for the step to release the GIL */
    int64_t settled_ns; /* the part of the duration that is counted as a stall so far; 0: none */
    uint32_t settled_path;
    uint32_t event; /* 1 + the row of the step's event; 0: none */
    int sites;
    qp_step_site site[QP_STEP_SITES];
    qp_step_queries causes;
} qp_step;
