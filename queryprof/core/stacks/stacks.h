/* Stacks of lines, as a tree: a stack consists of its innermost line and the stack around that
 * line. Call paths, which have only the program's own frames, and complete stacks share one
 * tree. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    QP_PATH_NONE = 0,  /* no frame with a name */
    QP_PATH_OTHER = 1, /* all paths and stacks that were found after a table was full */
    QP_STACK_NONE = QP_PATH_NONE
};

/* Allocates the tables. Returns false if out of memory. */
bool qp_stacks_start(void);
void qp_stacks_stop(void);

/* Returns the stack that consists of a line inside another stack; QP_PATH_OTHER if the table is
 * full. */
uint32_t qp_stack_extend(uint32_t outer, uint32_t line);

/* Returns a pointer to the complete stack of the submitter with this call path, as found for the
 * submitter's first work. The value is QP_STACK_NONE until the stack is found. The table owns the
 * value. */
uint32_t *qp_stack_of_submitter(uint32_t path);

/* Returns the stack of these lines, innermost first. */
uint32_t qp_stack_of_lines(const uint32_t *lines, uint32_t count);

/* Return a stack's innermost line, and the stack around that line (0 if none). */
uint32_t qp_stack_innermost_line(uint32_t stack);
uint32_t qp_stack_outer(uint32_t stack);
