/* The row of a statement's parameters. */
#pragma once

#include "memory/tables.h"

/* How often a statement ran again with the same parameters. */
typedef struct {
    uint32_t statement;
    uint32_t path;
    int64_t samples; /* executions whose parameters were looked at ... */
    int64_t repeats; /* ... and were those of a run before, with nothing written since */
} qp_parameter_row;
