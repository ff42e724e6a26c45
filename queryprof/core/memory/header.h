/* The header of a recording's memory: figures of the recording, and of its current part. Its
 * columns are declared in columns.c. */
#pragma once

#include <stdint.h>

#include "memory/tables.h"

/* The fields of the whole recording. */
typedef struct {
    char magic[8];    /* "QPREGION" */
    uint32_t version; /* version of this header and of the description */
    uint32_t text_at; /* the description: its offset, and its length */
    uint32_t text_bytes;
    uint32_t state; /* qp_region_state */
    int64_t pid;
    int64_t start_time;     /* the process's start: field 22 of /proc/PID/stat; 0: unknown */
    uint64_t pid_namespace; /* inode of the PID namespace; 0 if unknown */
    char boot[40];          /* the machine's boot id; empty if unknown */
    qp_text facts;          /* facts about the process, as queryprof.region.facts writes them */
    uint32_t timeline_half; /* the half of the table that is valid */
    uint32_t timeline_shift[2];
    int64_t timeline_first[2];
    int64_t start_unix_ns;
    int64_t alive_unix_ns; /* time of the last round of periodic work: the process was alive then */
    double ns_per_tick;
    uint64_t base_ticks; /* the same instant as base_unix_ns */
    int64_t base_unix_ns;
    uint64_t folded_statements;
    uint64_t folded_calls;
    uint64_t lost_counters;
    uint64_t unseen_files; /* number of connections whose file work is unknown */
    uint64_t unasked_plans;
    int64_t own_read_bytes; /* bytes that the core itself read and wrote */
    int64_t own_written_bytes;
    int64_t own_ns; /* queryprof's own time: see qp_own_ticks */
    uint32_t rounds;
    /* The number of the last part that contains these sums, and of the last part after which the
     * sums were emptied. They differ only after a part was written and before the sums are
     * emptied. */
    uint32_t part_begun;
    uint32_t part_ended;
    uint32_t lost_windows; /* number of windows removed because of the limit on kept windows */
    int64_t window_ns;     /* 0 if the recording has no windows */
    int64_t part_start_unix_ns;
    uint32_t counts[QP_TABLES];
} qp_header;

enum { QP_REGION_VERSION = 4 };

typedef enum { QP_REGION_RECORDS = 1, QP_REGION_ENDED = 2, QP_REGION_PART = 3 } qp_region_state;
