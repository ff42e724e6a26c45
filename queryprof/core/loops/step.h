/* A step of a running event loop (see steps.h). */
#pragma once

#include <Python.h>
#include <stdint.h>

#include "loops/loops.h"
#include "loops/step_queries.h"

enum { QP_STEP_SITES = 8 };

/* Where the watchdog saw a step. */
typedef struct {
    uint32_t path;
    uint32_t stack;
    int hits;
} qp_step_site;

typedef struct qp_step {
    struct qp_step *outer; /* when free, the next one */
    qp_running_loop *running_loop;
    qp_step_row *sums; /* NULL if what runs cannot be seen, only that the loop is late */
    uint64_t number;
    PyObject *callback; /* asyncio callback that it runs; owned by its caller; or NULL */
    uint64_t start_ticks;
    Py_ssize_t waiting; /* callbacks that were ready when it began */
    int64_t gc_ticks_before;
    int64_t gil_ticks;  /* how long the watchdog waited for it to release the GIL */
    int64_t settled_ns; /* part of its duration counted as a stall; 0 if it is not counted */
    uint32_t settled_path;
    uint32_t event; /* 1 + the row of its event; 0 if it has none */
    int sites;
    qp_step_site site[QP_STEP_SITES];
    qp_step_queries causes;
} qp_step;
