#include "recording/probe_cost.h"

#include "calls/probe.h"
#include "recording/recorder.h"
#include "runtime/clock.h"

enum { COST_ROUNDS = 20, COST_CALLS = 50 };

double qp_probe_cost_ns(void)
{
    static const qp_probe probe = {.operation = QP_EXECUTE, .source = QP_SOURCE_TEXT};
    double least_ns = 1e9;
    for (int round = 0; round < COST_ROUNDS; round++) {
        uint64_t from = qp_clock_ticks();
        for (int i = 0; i < COST_CALLS; i++) {
            qp_call *call = qp_call_begin(&probe, Py_None, NULL, NULL);
            if (call) {
                qp_call_end(call, Py_None);
            }
        }
        double ns = (double)qp_ticks_to_ns(qp_elapsed_ticks(from, qp_clock_ticks())) / COST_CALLS;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    qp_recorder_clear();
    return least_ns;
}
