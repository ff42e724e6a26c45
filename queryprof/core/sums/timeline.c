#include "sums/timeline.h"

#include <stdatomic.h>
#include <string.h>

#include "memory/region.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"

enum { FIRST_WIDTH_SHIFT = 27 /* 2^27 ns: 134 ms, so that a minute fits before coarsening */ };

/* The interval of the last calls, and its bounds, because most calls are in the same interval. The
 * bounds are not recalibrated with the clock; the bounds are wrong by at most the clock's drift in
 * a second. */
static struct {
    qp_interval_row *interval;
    uint64_t start_ticks;
    uint64_t end_ticks; /* 0 if none */
} latest;

void qp_timeline_apply_calibration(void)
{
    latest.end_ticks = 0;
}

static qp_interval_row *half_of_table(uint32_t number)
{
    return (qp_interval_row *)qp_first_row(QP_TIMELINE_ROWS) +
           (size_t)number * QP_TIMELINE_INTERVALS;
}

bool qp_timeline_start(int64_t unix_ns)
{
    qp_timeline_apply_calibration();
    qp_rows_clear(QP_TIMELINE_ROWS);
    qp_head->timeline_half = 0;
    qp_head->timeline_shift[0] = FIRST_WIDTH_SHIFT;
    qp_head->timeline_first[0] = unix_ns >> FIRST_WIDTH_SHIFT;
    return qp_rows_add(QP_TIMELINE_ROWS, 2 * QP_TIMELINE_INTERVALS) == 0;
}

/* Makes every interval twice as wide, by joining neighbors. The new intervals are written to the
 * other half of the table, which becomes valid when it is complete. So a reader never sees an
 * unfinished half. */
static QP_COLD void coarsen(void)
{
    uint32_t old = qp_head->timeline_half, new = 1 - old;
    int64_t old_first = qp_head->timeline_first[old], first = old_first >> 1;
    memset(half_of_table(new), 0, QP_TIMELINE_INTERVALS * sizeof *half_of_table(new));
    for (int64_t i = 0; i < QP_TIMELINE_INTERVALS; i++) {
        const qp_interval_row *from = &half_of_table(old)[i];
        qp_interval_row *into = &half_of_table(new)[((old_first + i) >> 1) - first];
        into->calls += from->calls;
        into->rows += from->rows;
        into->self_ns += from->self_ns;
    }
    qp_head->timeline_first[new] = first;
    qp_head->timeline_shift[new] = qp_head->timeline_shift[old] + 1;
    atomic_thread_fence(memory_order_release);
    qp_head->timeline_half = new;
}

static int64_t interval_number(int64_t unix_ns)
{
    uint32_t now = qp_head->timeline_half;
    return (unix_ns >> qp_head->timeline_shift[now]) - qp_head->timeline_first[now];
}

/* Distributes a duration over the intervals that it spans, up to its end. */
static QP_COLD void distribute_time(int64_t end_unix_ns, int64_t duration_ns, int64_t self_ns)
{
    uint32_t now = qp_head->timeline_half;
    int shift = (int)qp_head->timeline_shift[now];
    int64_t at = end_unix_ns - duration_ns, first_unix_ns = qp_head->timeline_first[now] << shift;
    at = at > first_unix_ns ? at : first_unix_ns;
    while (at < end_unix_ns) {
        int64_t next = ((at >> shift) + 1) << shift;
        int64_t here_ns = next < end_unix_ns ? next - at : end_unix_ns - at;
        int64_t share = (int64_t)((double)self_ns * ((double)here_ns / (double)(end_unix_ns - at)));
        half_of_table(now)[(at >> shift) - qp_head->timeline_first[now]].self_ns += share;
        self_ns -= share;
        at += here_ns;
    }
}

/* Adds calls to the interval in which they end, and distributes their time over the earlier
 * intervals. */
static QP_COLD void add_across_intervals(uint64_t from_ticks, uint64_t to_ticks, int64_t calls,
                                         int64_t rows, int64_t self_ns)
{
    int64_t end_unix_ns = qp_ticks_to_unix_ns(to_ticks);
    int64_t position = interval_number(end_unix_ns);
    while (position >= QP_TIMELINE_INTERVALS) {
        coarsen();
        position = interval_number(end_unix_ns);
    }
    bool is_set_back = position < 0; /* the wall clock was set back */
    position = is_set_back ? 0 : position;
    qp_interval_row *interval = &half_of_table(qp_head->timeline_half)[position];
    interval->calls += calls;
    interval->rows += rows;
    int64_t duration_ns = qp_ticks_to_ns(qp_elapsed_ticks(from_ticks, to_ticks));
    if (position && interval_number(end_unix_ns - duration_ns) < position) {
        distribute_time(end_unix_ns, duration_ns, self_ns);
    } else {
        interval->self_ns += self_ns;
    }
    int shift = (int)qp_head->timeline_shift[qp_head->timeline_half];
    int64_t width_ns = (int64_t)1 << shift, into_ns = end_unix_ns & (width_ns - 1);
    if (!is_set_back) {
        latest.interval = interval;
        latest.start_ticks = to_ticks - (uint64_t)qp_ns_to_ticks(into_ns);
        latest.end_ticks = to_ticks + (uint64_t)qp_ns_to_ticks(width_ns - into_ns);
    }
}

void qp_timeline_add(uint64_t from_ticks, uint64_t to_ticks, int64_t calls, int64_t rows,
                     int64_t self_ns)
{
    if (from_ticks < latest.start_ticks || to_ticks >= latest.end_ticks) {
        add_across_intervals(from_ticks, to_ticks, calls, rows, self_ns);
        return;
    }
    latest.interval->calls += calls;
    latest.interval->rows += rows;
    latest.interval->self_ns += self_ns;
}
