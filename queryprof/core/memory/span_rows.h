/* The rows of spans. */
#pragma once

#include <stdint.h>

#include "memory/tables.h"

enum {
    QP_SPAN_RUNS = 64, /* maximum number of runs per span; the last run includes all later runs */
    QP_SLOWEST = 3     /* the number of slowest spans kept per name */
};

/* The spans of one name that have ended. */
typedef struct {
    qp_text name;
    int64_t count;
    int64_t errors;
    int64_t cpu_count; /* number of spans whose CPU time is known */
    int64_t cpu_ns;    /* total CPU time of these spans */
    int64_t database_ns;
    qp_distribution durations;
    qp_distribution queries; /* number of queries per span, where other distributions have
                              * nanoseconds */
} qp_span_row;

/* A statement that one call path executed again and again in spans of one name. */
typedef struct {
    uint32_t span;
    uint32_t statement;
    uint32_t path;
    int64_t spans;
    int64_t executions;
    int64_t most;
} qp_repeat_row;

typedef struct {
    uint32_t span;
    int32_t status;
    int64_t count;
} qp_status_row;

/* A span that has ended. */
typedef struct {
    uint32_t span;
    uint32_t thread; /* thread that began the span */
    int32_t status;  /* status of a request; 0 if none */
    uint32_t failed;
    int64_t started_unix_ns;
    int64_t duration_ns;
    int64_t database_ns;
    int64_t executions;
    int64_t queue_ns; /* lower bound of the time in which functions that the span submitted waited
                       * for a thread */
    int64_t cpu_ns;   /* -1: unknown */
} qp_ended_span;

/* One of the slowest spans of its name. The runs of row n are in the table of runs, from row n x
 * QP_SPAN_RUNS on. */
typedef struct {
    uint32_t sequence; /* odd while the row and its runs are being changed */
    uint32_t first_run;
    uint32_t runs;
    qp_ended_span ended;
} qp_slow_span_row;

typedef struct {
    qp_key key;
    int64_t start_ticks; /* start_ticks and end_ticks are relative to the start of the span */
    int64_t end_ticks;
    int64_t executions;
    int64_t self_ns;
    int64_t rows;
} qp_span_run_row;
