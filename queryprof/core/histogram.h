/* The log-linear histogram's scale: 16 buckets an octave of nanoseconds.
 *
 * Below 16 ns a bucket is 1 ns wide; above, a bucket's width is a sixteenth of its octave, so
 * that its middle is never more than 3.2% from any value in it (after HdrHistogram's scale).
 * The same arithmetic stands in Python in queryprof/analysis/histogram.py.
 */
#ifndef QP_HISTOGRAM_H
#define QP_HISTOGRAM_H

#include <stdint.h>

enum {
    QP_BUCKETS_PER_OCTAVE = 16,
    QP_OCTAVES = 40, /* up to 2^43 ns: two and a half hours; longer ones go in the last bucket */
    QP_BUCKETS = QP_BUCKETS_PER_OCTAVE * QP_OCTAVES
};

static inline int qp_histogram_bucket(int64_t ns)
{
    uint64_t value = ns < 0 ? 0 : (uint64_t)ns;
    if (value < QP_BUCKETS_PER_OCTAVE) {
        return (int)value;
    }
#ifdef _MSC_VER
    unsigned long octave;
    _BitScanReverse64(&octave, value);
#else
    int octave = 63 - __builtin_clzll(value);
#endif
    int bucket = ((int)octave - 3) * QP_BUCKETS_PER_OCTAVE + (int)((value >> (octave - 4)) & 15);
    return bucket < QP_BUCKETS ? bucket : QP_BUCKETS - 1;
}

#endif
