#include "runtime/recording.h"

#include "runtime/clock.h"

uint32_t qp_recording;

int64_t qp_own_ticks;
uint32_t qp_own_countdown = QP_OWN_SAMPLING / 2;
qp_own_samples qp_own_begins, qp_own_ends, qp_own_counters;

void qp_own_time_clear(void)
{
    qp_own_ticks = 0;
    qp_own_begins.count = qp_own_ends.count = qp_own_counters.count = 0;
    qp_own_countdown = QP_OWN_SAMPLING / 2; /* not the first call, because the CPU caches are cold
                                             * then */
}

qp_own_part qp_own_part_begin(void)
{
    return (qp_own_part){qp_clock_ticks(), qp_own_ticks};
}

/* Returns the median of the samples in the ring; for an even number of samples, the lower one. */
static int64_t median(const qp_own_samples *samples)
{
    int64_t sorted[QP_OWN_LAST];
    uint32_t count = samples->count < QP_OWN_LAST ? samples->count : QP_OWN_LAST;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > samples->ticks[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = samples->ticks[i];
    }
    return sorted[(count - 1) / 2];
}

void qp_own_part_end(qp_own_samples *samples, qp_own_part part, uint64_t now_ticks)
{
    int64_t ticks = qp_elapsed_ticks(part.from_ticks, now_ticks);
    int64_t rest = ticks - (qp_own_ticks - part.own_ticks);
    samples->ticks[samples->count++ % QP_OWN_LAST] = rest > 0 ? rest : 0;
    /* The first samples are added one by one. Later samples are added once per ring, because
     * sorting takes long. */
    bool is_first = samples->count <= QP_OWN_LAST;
    if (is_first || samples->count % QP_OWN_LAST == 0) {
        qp_own_ticks += median(samples) * QP_OWN_SAMPLING * (is_first ? 1 : QP_OWN_LAST);
    }
}
