#include "stacks/stacks.h"

#include "memory/region.h"
#include "runtime/index.h"
#include "stacks/code_lines.h"

static qp_index stack_index;
static uint32_t *submitters; /* complete stacks of submitters, by call path */

static qp_stack_row *stack_rows(void)
{
    return qp_first_row(QP_STACK_ROWS);
}

bool qp_stacks_start(void)
{
    submitters = qp_allocate(QP_STACKS, sizeof *submitters);
    if (!submitters || !qp_index_start(&stack_index, 2 * QP_STACKS) ||
        qp_rows_add(QP_STACK_ROWS, 2) != 0) {
        return false;
    }
    stack_rows()[QP_PATH_OTHER] = (qp_stack_row){QP_PATH_NONE, QP_LINE_OTHER};
    return true;
}

void qp_stacks_stop(void)
{
    qp_index_stop(&stack_index);
    qp_free(submitters);
    submitters = NULL;
}

uint32_t *qp_stack_of_submitter(uint32_t path)
{
    return &submitters[path];
}

uint32_t qp_stack_extend(uint32_t outer, uint32_t line)
{
    if (outer == QP_PATH_OTHER) {
        return QP_PATH_OTHER;
    }
    uint32_t slot = qp_index_begin(&stack_index, qp_hash_mix(qp_hash_mix(0, outer), line));
    for (; stack_index.slots[slot]; slot = qp_index_next(&stack_index, slot)) {
        uint32_t number = stack_index.slots[slot] - 1;
        if (stack_rows()[number].outer == outer && stack_rows()[number].line == line) {
            return number;
        }
    }
    uint32_t number = qp_rows_add(QP_STACK_ROWS, 1);
    if (number == UINT32_MAX) {
        return QP_PATH_OTHER;
    }
    stack_rows()[number] = (qp_stack_row){outer, line};
    stack_index.slots[slot] = number + 1;
    return number;
}

uint32_t qp_stack_of_lines(const uint32_t *lines, uint32_t count)
{
    uint32_t stack = QP_PATH_NONE;
    while (count) {
        stack = qp_stack_extend(stack, lines[--count]);
    }
    return stack;
}

uint32_t qp_stack_innermost_line(uint32_t stack)
{
    return stack_rows()[stack].line;
}

uint32_t qp_stack_outer(uint32_t stack)
{
    return stack_rows()[stack].outer;
}
