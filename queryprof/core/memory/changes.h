/* Lists the rows that have changed since the last mark. A mark is a point in time, such as the
 * start of a test. Reports about a part of a recording, such as a test, use the changed rows.
 *
 * While changes are watched, a row is copied before its first change. All other changes cost one
 * comparison.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* The number of the present mark. Each row that can be watched begins with the mark that was
 * present at its last change. */
extern uint32_t qp_mark;

/* Copies a row, if changes are watched, and stores the present mark in the row. */
void qp_row_save_before_change(qp_table table, void *row);

/* Must be called before a row changes. Returns true if this is the row's first change since the
 * mark. */
static inline bool qp_row_before_change(qp_table table, void *row)
{
    if (*(const uint32_t *)row == qp_mark) {
        return false;
    }
    qp_row_save_before_change(table, row);
    return true;
}

/* Sets a mark. Returns a new list of the rows that have changed since the last mark, as (table, row
 * number, bytes at the last mark, bytes now); NULL with an exception. If `watches` is true, changes
 * are watched from now on. */
PyObject *qp_changes_take_rows(bool watches);

/* Saves the changes of rows that are about to be emptied. Returns false with an exception. */
bool qp_changes_save_before_clear(void);

/* Allocates the log and sets a mark. Returns false if out of memory. */
bool qp_changes_start(void);
void qp_changes_stop(void);

/* In a forked child: changes are not watched. */
void qp_changes_clear(void);
