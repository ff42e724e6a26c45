/* The database time of one or many steps, by statement and call path. */
#pragma once

#include <stdint.h>

#include "memory/tables.h"

enum { QP_CAUSES_LISTED = 24 };

typedef struct {
    uint32_t statement;
    uint32_t path;
    int64_t calls;
    int64_t ticks;
} qp_step_query;

/* The first QP_CAUSES_LISTED pairs of statement and call path in a step. The total includes all
 * pairs. */
typedef struct {
    int64_t total_ticks;
    int known;
    qp_step_query cause[QP_CAUSES_LISTED];
} qp_step_queries;

static inline void qp_step_queries_add(qp_step_queries *to, uint32_t statement, uint32_t path,
                                       int64_t calls, int64_t ticks)
{
    to->total_ticks += ticks;
    for (int i = 0; i < to->known; i++) {
        qp_step_query *cause = &to->cause[i];
        if (cause->statement == statement && cause->path == path) {
            cause->calls += calls;
            cause->ticks += ticks;
            return;
        }
    }
    if (to->known < QP_CAUSES_LISTED) {
        to->cause[to->known++] = (qp_step_query){statement, path, calls, ticks};
    }
}

/* Adds the pairs of a step to a list of rows, which has the limit QP_CAUSES_LISTED as well. */
void qp_step_queries_merge(qp_cause_list *to, const qp_step_queries *from);
