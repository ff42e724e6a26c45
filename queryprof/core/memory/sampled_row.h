/* The rows of samples of a statement at a call path: the statement's parameters, and the line that
 * executes the statement. */
#pragma once

#include "memory/tables.h"

/* Facts about the values given to a statement, from a sample of its executions. */
typedef struct {
    uint32_t statement;
    uint32_t path;
    int64_t samples;       /* executions with sampled parameters */
    int64_t repeats;       /* sampled executions with the parameters of an earlier run and no write
                            * since */
    int64_t offsets;       /* sampled executions with a known OFFSET at the end of the text */
    int64_t skipped;       /* sum of these OFFSETs */
    int64_t open_patterns; /* executions whose pattern begins with a wildcard */
    int64_t slow;          /* samples that were taken because the execution was slow */
} qp_parameter_row;

/* Passes of the program's line in which a statement is executed. */
typedef struct {
    uint32_t statement;
    uint32_t path;
    int64_t passes;      /* number of timed passes */
    int64_t executions;  /* executions of the statement in these passes */
    int64_t others;      /* executions of other statements in these passes */
    int64_t ns;          /* total time of these passes */
    int64_t left_out_ns; /* duration of the longest ignored pass */
    int64_t loop_rows;   /* rows that loops have used while their line was timed */
    int64_t loop_ns;     /* time of the line for these rows, without its start */
} qp_line_time_row;

/* One of the newest calls of the process (see recent_calls.h). */
typedef struct {
    uint64_t started_ticks; /* 0 if the row is free, or being written */
    float duration_ns;      /* includes the fetches so far; negative if the call failed */
    uint32_t aggregate;     /* the number of the call's row in the aggregates */
} qp_recent_call_row;
