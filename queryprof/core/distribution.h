/* A distribution of durations: how many, their sum, the longest, and a log-linear histogram. */
#ifndef QP_DISTRIBUTION_H
#define QP_DISTRIBUTION_H

#include <Python.h>
#include <stdint.h>

#include "histogram.h"

typedef struct {
    int64_t count;
    int64_t total_ns;
    int64_t max_ns;
    uint32_t buckets[QP_BUCKETS];
} qp_distribution;

static inline void qp_distribution_add(qp_distribution *to, int64_t ns)
{
    to->count++;
    to->total_ns += ns;
    to->max_ns = ns > to->max_ns ? ns : to->max_ns;
    to->buckets[qp_histogram_bucket(ns)]++;
}

/* Empties it into a new tuple (count, total_ns, max_ns, (bucket, count, bucket, count, ...));
 * NULL with an exception, and then it keeps what it holds. */
PyObject *qp_distribution_take(qp_distribution *from);

#endif
