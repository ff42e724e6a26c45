/* The rows of what is sampled of a statement at a call path: its parameters, and the line that
 * executes it. */
#pragma once

#include "memory/tables.h"

/* What the values that a statement is given have shown, of a sample of its executions. */
typedef struct {
    uint32_t statement;
    uint32_t path;
    int64_t samples;       /* executions whose parameters were looked at ... */
    int64_t repeats;       /* ... and were those of a run before, with nothing written since */
    int64_t offsets;       /* of these, with a known OFFSET at the end ... */
    int64_t skipped;       /* ... and the sum of it */
    int64_t open_patterns; /* with a value that begins with a wildcard */
} qp_parameter_row;

/* Passes of the program's line in which a statement is executed. */
typedef struct {
    uint32_t statement;
    uint32_t path;
    int64_t passes;     /* that were timed */
    int64_t executions; /* of the statement in them ... */
    int64_t others;     /* ... and of other statements */
    int64_t ns;         /* of these passes */
} qp_line_time_row;
