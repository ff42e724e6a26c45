/* Log-linear histograms with 16 buckets per octave of nanoseconds.
 *
 * Below 16 ns, a bucket is 1 ns wide. Above, a bucket's width is a sixteenth of its octave, so that
 * the middle of a bucket is never more than 3.2% from any value in the bucket (after HdrHistogram's
 * scale). queryprof/analysis/histogram.py does the same arithmetic in Python.
 *
 * Most histograms have few different buckets, which are stored in the row that owns the histogram.
 * A histogram with more buckets is spread: it has a row in another table, which lists one row for
 * each octave.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory/region.h"
#include "memory/tables.h"

/* Buckets for durations up to 2^43 ns, two and a half hours. Longer durations are in the last
 * bucket. */
enum { QP_BUCKETS = QP_BUCKETS_PER_OCTAVE * QP_OCTAVES };

static inline int qp_histogram_bucket(int64_t ns)
{
    uint64_t value = ns < 0 ? 0 : (uint64_t)ns;
    if (value < QP_BUCKETS_PER_OCTAVE) {
        return (int)value;
    }
    int octave = 63 - __builtin_clzll(value);
    int bucket = ((int)octave - 3) * QP_BUCKETS_PER_OCTAVE + (int)((value >> (octave - 4)) & 15);
    return bucket < QP_BUCKETS ? bucket : QP_BUCKETS - 1;
}

/* Counts a duration whose bucket is empty, or when the row is full. */
void qp_histogram_count_slow_path(qp_histogram *to, int bucket);

/* Returns the octave of a bucket in a spread histogram; NULL if there is none. */
static inline qp_octave_row *qp_histogram_octave(const qp_histogram *h, uint32_t bucket)
{
    const qp_spread_row *spread =
        (const qp_spread_row *)qp_first_row(QP_SPREAD_ROWS) + h->spread - 1;
    uint32_t number = spread->octaves[bucket / QP_BUCKETS_PER_OCTAVE];
    return number ? (qp_octave_row *)qp_first_row(QP_OCTAVE_ROWS) + number - 1 : NULL;
}

/* Counts a duration. */
static inline void qp_histogram_count(qp_histogram *to, int64_t ns)
{
    uint32_t bucket = (uint32_t)qp_histogram_bucket(ns);
    if (to->spread) {
        qp_octave_row *octave = qp_histogram_octave(to, bucket);
        if (octave) {
            octave->counts[bucket % QP_BUCKETS_PER_OCTAVE]++;
            return;
        }
    }
    for (int i = 0; !to->spread && i < QP_ROW_BUCKETS; i++) {
        if (to->bucket[i] == bucket && to->count[i] && to->count[i] < UINT16_MAX) {
            to->count[i]++;
            return;
        }
    }
    qp_histogram_count_slow_path(to, (int)bucket);
}

/* Removes a duration that was counted. */
void qp_histogram_uncount(qp_histogram *from, int64_t ns);

/* Empties the table of spread histograms. The owners of the other rows empty their rows. */
void qp_histograms_clear(void);

static inline void qp_distribution_add(qp_distribution *to, int64_t ns)
{
    to->count++;
    to->total_ns += ns;
    to->max_ns = ns > to->max_ns ? ns : to->max_ns;
    qp_histogram_count(&to->histogram, ns);
}
