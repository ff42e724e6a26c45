/* Samples: the slowest executions of each statement (exemplars), and whole stacks of slow
 * executions and of 1 in 64 of the rest (stack samples).
 */
#ifndef QP_SAMPLES_H
#define QP_SAMPLES_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregates.h"

enum {
    QP_STACK_SAMPLING = 64,        /* 1 execution in so many has its stack taken */
    QP_SLOW_NS = 10 * 1000 * 1000, /* every execution from here on has */
    QP_EXEMPLARS = 3               /* kept of each statement */
};

/* Allocates the tables; false without memory. */
bool qp_samples_start(void);
void qp_samples_stop(void);

/* What an execution of the statement must exceed to be among its slowest. */
int64_t qp_exemplar_floor_ns(uint32_t statement);

/* The same in ticks of the clock, or QP_SLOW_NS where that is less: from here on an execution
 * deserves to be looked at, at once. */
int64_t qp_notable_ticks(uint32_t statement);

/* Keeps an execution, or its new duration when one with this serial number is kept already.
 * `sql` and `parameters` are NULL or new references, which this takes. */
void qp_exemplar_keep(const qp_key *key, uint64_t serial, int64_t started_unix_ns,
                      int64_t duration_ns, int64_t rows, uint32_t stack, PyObject *sql,
                      PyObject *parameters);

/* Adds to what a stack stands for: executions and time, already weighted (both may be negative,
 * to correct what was added before). */
void qp_stack_sample_add(uint32_t statement, uint32_t stack, int64_t executions, int64_t ns);

/* Empties the tables into new lists of tuples (see _core.pyi); NULL with an exception. */
PyObject *qp_exemplars_take(void);
PyObject *qp_stack_samples_take(void);

/* Drops what was kept. */
void qp_samples_forget(void);

/* Keeps the slowest executions from here on, for a reader that has not seen earlier ones. */
void qp_exemplars_restart(void);

#endif
