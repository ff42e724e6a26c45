#include "runtime/recording.h"

#include "runtime/clock.h"

uint32_t qp_recording;

int64_t qp_own_ticks;
uint32_t qp_own_countdown = QP_OWN_SAMPLING / 2;

void qp_own_begin(void)
{
    qp_own_ticks = 0;
    qp_own_countdown = QP_OWN_SAMPLING / 2; /* not the first: nothing is in the caches yet */
}

qp_own_part qp_own_part_begin(void)
{
    return (qp_own_part){qp_clock_ticks(), qp_own_ticks};
}

void qp_own_part_end(qp_own_part part, uint64_t now_ticks)
{
    int64_t ticks = qp_clock_elapsed(part.from_ticks, now_ticks);
    int64_t rest = ticks - (qp_own_ticks - part.own_ticks);
    qp_own_ticks += rest > 0 ? rest * QP_OWN_SAMPLING : 0;
}
