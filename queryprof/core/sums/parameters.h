/* Counts how often a statement runs again in the same request or thread, with the parameters of a
 * recent run and without a write in between. Only a sample of the fast executions is counted.
 * Parameters are compared by a hash with a random key for each recording. Neither hash nor key
 * leaves the process's private memory. */
#pragma once

#include <Python.h>
#include <stdbool.h>

#include "memory/sampled_row.h"

/* Number of executions that have changed rows so far; wraps around. */
extern uint32_t qp_writes;

/* Executions that take at least this long are all counted. Hashing their parameters takes less than
 * a hundredth of their time. */
extern int64_t qp_parameters_slow_ticks;

/* Allocates the tables. Returns false if out of memory. */
bool qp_parameters_start(void);
void qp_parameters_stop(void);
void qp_parameters_clear(void);

/* A sampled execution: its text (which may contain literals) and its parameters, both borrowed;
 * `parameters` may be NULL. */
typedef struct {
    PyObject *sql, *parameters;
    uint64_t work;   /* number of the request, or of the thread */
    bool is_sqlite;  /* the text is for SQLite */
    bool has_failed; /* the execution has failed */
    bool is_chosen;  /* chosen because it is slow or the slowest so far, not at random; its values
                      * count only while the statement has few samples */
    bool is_slow;    /* took qp_parameters_slow_ticks */
} qp_sampled_execution;

/* Notes an execution. No code of the program runs. */
void qp_parameters_sample(const qp_key *key, const qp_sampled_execution *sampled);
