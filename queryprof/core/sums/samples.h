/* Samples: the slowest executions of each statement (exemplars), and complete stacks of slow
 * executions and of 1 in 64 of the others (stack samples).
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

enum {
    QP_STACK_SAMPLING = 64,        /* the stack of 1 in this many executions is recorded */
    QP_SLOW_NS = 10 * 1000 * 1000, /* the stack of every execution that takes this long or longer is
                                    * recorded */
    QP_EXEMPLARS_KEPT = 5          /* exemplars kept per statement */
};

/* The stack of an execution is recorded if these bits of a random number are 0. The mask selects 1
 * in QP_STACK_SAMPLING executions, or all executions. The caller must hold the GIL. */
extern uint32_t qp_stack_mask;

/* Allocates the tables. Returns false if out of memory. */
bool qp_samples_allocate(void);
void qp_samples_stop(void);

/* Returns the duration that an execution of the statement must exceed to be among its slowest. */
int64_t qp_exemplar_floor_ns(uint32_t statement);

/* Returns the duration of qp_exemplar_floor_ns in ticks of the clock, but at most QP_SLOW_NS. A
 * longer execution is sampled at once. */
int64_t qp_exemplar_sample_ticks(uint32_t statement);

/* Keeps an execution as an exemplar, or updates the exemplar with the same serial number. `of`
 * contains all fields except the texts. `sql` and `parameters` are borrowed; NULL if they are not
 * kept. */
void qp_exemplar_keep(const qp_exemplar_row *of, PyObject *sql, PyObject *parameters);

/* Adds weighted executions and time to a stack sample. Both may be negative, to correct earlier
 * additions. */
void qp_stack_sample_add(uint32_t statement, uint32_t stack, int64_t executions, int64_t ns);

/* Clears the samples. */
void qp_samples_clear(void);
