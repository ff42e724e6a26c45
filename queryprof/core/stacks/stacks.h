/* Stacks of lines, as a tree: a stack is its innermost line and the stack around it. Call paths,
 * which have only the program's own frames, and whole stacks share one tree. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    QP_PATH_NONE = 0,  /* no frame with a name */
    QP_PATH_OTHER = 1, /* what came after a table was full */
    QP_STACK_NONE = QP_PATH_NONE
};

/* Allocates the tables. Returns false if out of memory. */
bool qp_stacks_start(void);
void qp_stacks_stop(void);

/* The stack with a line inside another stack; QP_PATH_OTHER if the table is full. */
uint32_t qp_stack_inside(uint32_t outer, uint32_t line);

/* Returns where the whole stack of the submitter at a call path is stored, as found for its first
 * work; QP_STACK_NONE: not found yet. The stacks own it. */
uint32_t *qp_stack_of_submitter(uint32_t path);

/* The stack of these lines, innermost first. */
uint32_t qp_stack_of(const uint32_t *lines, uint32_t count);

/* A stack's innermost line, and the stack around it. */
uint32_t qp_stack_line(uint32_t stack);
uint32_t qp_stack_outer(uint32_t stack);
