/* How often a statement runs again with the parameters of a run shortly before, in the same work (a
 * request, or a thread's), and nothing written in between: of a sample of executions. Parameters
 * are compared by a hash with a key that is made for the recording; neither leaves the process's
 * own memory.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "memory/sampled_row.h"

/* Executions that changed rows so far; wraps around. */
extern uint32_t qp_writes;

/* Allocates the tables. Returns false if out of memory. */
bool qp_parameters_start(void);
void qp_parameters_stop(void);
void qp_parameters_clear(void);

/* The source of a sample: an execution's text (it may hold literals) and parameters, both borrowed;
 * `parameters` may be NULL. */
typedef struct {
    PyObject *sql, *parameters;
    uint64_t work;   /* a number of the request, or of the thread */
    bool is_sqlite;  /* the text is for SQLite */
    bool has_failed; /* the execution */
    bool is_chosen;  /* it is slow, and no sample: it counts where there are few samples */
} qp_sampled;

/* Notes an execution. No code of the program runs. */
void qp_parameters_sample(const qp_key *key, const qp_sampled *sampled);
