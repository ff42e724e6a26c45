#include "memory/histogram.h"

#include "memory/region.h"
#include "runtime/compiler.h"

/* Returns the counter of a bucket in a spread histogram, and adds the bucket's octave if it is
 * missing; NULL if the table is full. */
static uint32_t *bucket_counter(uint32_t spread, int bucket)
{
    qp_spread_row *rows = qp_first_row(QP_SPREAD_ROWS);
    uint16_t *octave = &rows[spread - 1].octaves[bucket / QP_BUCKETS_PER_OCTAVE];
    if (!*octave) {
        uint32_t added = qp_rows_add(QP_OCTAVE_ROWS, 1);
        *octave = added == UINT32_MAX ? 0 : (uint16_t)(added + 1);
    }
    qp_octave_row *octaves = qp_first_row(QP_OCTAVE_ROWS);
    return *octave ? &octaves[*octave - 1].counts[bucket % QP_BUCKETS_PER_OCTAVE] : NULL;
}

static void count_spread(uint32_t spread, int bucket, uint32_t durations)
{
    uint32_t *count = bucket_counter(spread, bucket);
    if (count) {
        *count += durations;
    } /* otherwise the duration is only in the sums */
}

/* Moves a histogram to a spread row. Returns false if the table is full. A concurrent reader sees
 * the old or the new state. */
static bool move_to_spread(qp_histogram *h)
{
    uint32_t added = qp_rows_add(QP_SPREAD_ROWS, 1);
    if (added == UINT32_MAX) {
        return false;
    }
    for (int i = 0; i < QP_ROW_BUCKETS; i++) {
        if (h->count[i]) {
            count_spread(added + 1, h->bucket[i], h->count[i]);
        }
    }
    h->spread = added + 1;
    return true;
}

QP_COLD void qp_histogram_count_slow_path(qp_histogram *to, int bucket)
{
    for (int i = 0; !to->spread && i < QP_ROW_BUCKETS; i++) {
        if (!to->count[i]) {
            to->bucket[i] = (uint16_t)bucket;
            to->count[i] = 1;
            return;
        }
        if (to->bucket[i] == bucket) {
            break; /* the counter of this bucket is full */
        }
    }
    if (to->spread || move_to_spread(to)) {
        count_spread(to->spread, bucket, 1);
    }
}

void qp_histogram_uncount(qp_histogram *from, int64_t ns)
{
    int bucket = qp_histogram_bucket(ns);
    if (from->spread) {
        qp_octave_row *octave = qp_histogram_octave(from, (uint32_t)bucket);
        uint32_t *count = octave ? &octave->counts[bucket % QP_BUCKETS_PER_OCTAVE] : NULL;
        if (count && *count) {
            (*count)--;
        }
        return;
    }
    for (int i = 0; i < QP_ROW_BUCKETS; i++) {
        if (from->bucket[i] == bucket && from->count[i]) {
            from->count[i]--;
            return;
        }
    }
}

void qp_histograms_clear(void)
{
    qp_rows_clear(QP_SPREAD_ROWS);
    qp_rows_clear(QP_OCTAVE_ROWS);
}
