/* How many rows a call of the driver fetched or changed. */
#pragma once

#include <Python.h>
#include <stdint.h>

#include "calls/call.h"

/* Number of rows that a fetching call returned in `result` (borrowed; NULL if none). */
int64_t qp_rows_served(const qp_call *call, PyObject *result);

/* Rows that an execution returned without a cursor, or sent for nothing, in `result`. */
int64_t qp_rows_returned(const qp_call *call, PyObject *result);

/* Rows that the call changed, from its cursor; `result` as above. */
int64_t qp_rows_changed(const qp_call *call, PyObject *result);
