/* Repeated executions of a running span, by statement and call path. */
#pragma once

#include <stdint.h>

enum {
    QP_SPAN_SITES = 64,  /* maximum number of counted pairs of statement and call path per span */
    QP_SPAN_REPEATS = 10 /* a statement is repeated if one call path executes it more often than
                          * this in one span */
};

typedef struct {
    uint32_t statement;
    uint32_t path;
    uint32_t executions;
} qp_span_site;

typedef struct {
    uint32_t count;
    qp_span_site site[QP_SPAN_SITES];
} qp_span_sites;

void qp_span_sites_add_executions(qp_span_sites *sites, uint32_t statement, uint32_t path,
                                  uint32_t executions);

/* Moves an execution that was counted to another statement. */
void qp_span_sites_change_statement(qp_span_sites *sites, uint32_t from, uint32_t to,
                                    uint32_t path);

/* Adds the repeats of an ended span to the sums of its name, and all executions to the outer span
 * (NULL if it has no outer span). */
void qp_span_sites_add_to_sums(const qp_span_sites *sites, uint16_t name, qp_span_sites *outer);
