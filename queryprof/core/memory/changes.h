/* What has changed since it was last asked: for those who want to know of a part of a recording,
 * like a test.
 *
 * While changes are watched, a row is copied before its first one; else it costs a comparison.
 */
#ifndef QP_MEMORY_CHANGES_H
#define QP_MEMORY_CHANGES_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* The number of the present mark; each row that can be watched begins with that of its last change.
 */
extern uint32_t qp_mark;

/* Copies a row, if changes are watched, and notes the mark in it. */
void qp_row_first_change(qp_table table, void *row);

/* A row is about to change; true: for the first time since the mark. */
static inline bool qp_row_changes(qp_table table, void *row)
{
    if (*(const uint32_t *)row == qp_mark) {
        return false;
    }
    qp_row_first_change(table, row);
    return true;
}

/* Sets a mark. A new list of the rows that have changed since the last one, as (table, number of
 * the row, the row's bytes then, its bytes now); NULL with an exception. `watches`: they
 * will be asked for again. */
PyObject *qp_changes_drain(bool watches);

/* Rows are about to be emptied, and what has changed must be kept; false with an exception. */
bool qp_changes_seal(void);

/* Makes the log, and sets a mark; false without memory. */
bool qp_changes_start(void);
void qp_changes_stop(void);

/* In a forked child: changes are not watched. */
void qp_changes_clear(void);

#endif
