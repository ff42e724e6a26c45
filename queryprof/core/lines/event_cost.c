#include "lines/event_cost.h"

#include "runtime/clock.h"

enum {
    EVENT_NS = 80,     /* the least that counts; 38 to 78 in a loop of empty lines */
    LONG_NS = 500,     /* an object mapper takes 2 to 20 us to make an object of a row */
    MOST_NS = 1000000, /* in one watch */
    NEAR_LINES = 100,  /* CPython stores lines up to this distance (127 in 3.12) with each
                        * instruction */
    SEARCHES = 2,      /* of an event: its line, and the line before it */
    MEASUREMENTS = 3   /* the shortest counts, because another process may have run */
};

static int64_t event_ns = EVENT_NS;

void qp_event_cost_measure(PyCodeObject *code, int line)
{
    event_ns = EVENT_NS;
    if (line - code->co_firstlineno <= NEAR_LINES) {
        return;
    }
    int end = (int)((Py_SIZE(code) - 1) * (Py_ssize_t)sizeof(uint16_t)); /* a unit has 2 bytes */
    int64_t least = INT64_MAX;
    for (int i = 0; i < MEASUREMENTS; i++) {
        uint64_t from = qp_clock_ticks();
        PyCode_Addr2Line(code, end);
        int64_t ticks = qp_elapsed_ticks(from, qp_clock_ticks());
        least = ticks < least ? ticks : least;
    }
    event_ns += SEARCHES * qp_ticks_to_ns(least);
}

int64_t qp_event_cost_ns(int events)
{
    return events * event_ns;
}

bool qp_event_cost_is_high(int events)
{
    return qp_event_cost_ns(events) > MOST_NS;
}

bool qp_event_cost_is_long(void)
{
    return event_ns > LONG_NS;
}
