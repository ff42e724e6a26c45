/* How many rows a call of the driver fetched or changed. */
#pragma once

#include <Python.h>
#include <stdint.h>

#include "calls/call.h"

/* Returns the number of rows that a fetching call returned in `result` (borrowed; may be NULL). */
int64_t qp_fetched_row_count(const qp_call *call, PyObject *result);

/* Returns the number of rows that an execution without a cursor returned or changed. `result`
 * (borrowed, may be NULL) contains the rows or the command tag. */
int64_t qp_result_row_count(const qp_call *call, PyObject *result);

/* Returns the number of rows that a call changed, as its cursor reports; -1 if the recording has
 * ended in the meantime. `result` is borrowed and may be NULL. */
int64_t qp_changed_row_count(const qp_call *call, PyObject *result);
