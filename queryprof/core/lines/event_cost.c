#include "lines/event_cost.h"

#include "runtime/clock.h"

enum {
    EVENT_NS = 80,     /* the least that counts; 38 to 78 in a loop of empty lines */
    LONG_NS = 500,     /* an object mapper takes 2 to 20 us to make an object of a row */
    MOST_NS = 1000000, /* in one watch */
};

static struct {
    uint64_t jumped; /* when the last event ended, if it was a backward jump; else 0 */
    int64_t ticks;
} cost;

void qp_event_cost_clear(void)
{
    cost.jumped = 0;
    cost.ticks = 0;
}

void qp_event_cost_after_jump(bool is_backward)
{
    cost.jumped = is_backward ? qp_clock_ticks() : 0;
}

void qp_event_cost_at_line(bool is_watched)
{
    if (cost.jumped && is_watched) {
        int64_t ticks = qp_elapsed_ticks(cost.jumped, qp_clock_ticks());
        cost.ticks = cost.ticks && cost.ticks < ticks ? cost.ticks : ticks;
    }
    cost.jumped = 0;
}

int64_t qp_event_cost_ticks(void)
{
    return cost.ticks;
}

int64_t qp_event_cost_ns(int events)
{
    int64_t each_ns = qp_ticks_to_ns(cost.ticks);
    return events * (each_ns > EVENT_NS ? each_ns : EVENT_NS);
}

bool qp_event_cost_is_high(int events)
{
    return qp_event_cost_ns(events) > MOST_NS;
}

bool qp_event_cost_is_long(void)
{
    return qp_event_cost_ns(1) > LONG_NS;
}
