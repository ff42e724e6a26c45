#include "calls/carry_over.h"

#include "calls/executions.h"
#include "counters/readings.h"
#include "runtime/compiler.h"

enum { MOST_RUNNING = 512 }; /* those beyond are counted with their time so far */

static struct {
    qp_key keys[MOST_RUNNING];
    int count;
} running;

static bool runs(const qp_key *key)
{
    for (int i = 0; i < running.count; i++) {
        if (qp_same_key(&running.keys[i], key)) {
            return true;
        }
    }
    return false;
}

static bool is_settled(const qp_execution *e)
{
    return e->stage == QP_STAGE_SETTLED && !e->ignored;
}

static void take_out(qp_execution *e)
{
    bool goes_on = is_settled(e) && (e->in_use || (e->cursor && runs(&e->meter.key)));
    if (goes_on && e->generation == qp_aggregates_generation && e->settled_ns >= 0) {
        int64_t settled_ns = e->settled_ns;
        /* First: a reader of a killed process's memory counts it if the histogram lacks it. */
        qp_release_store(&e->settled_ns, -1);
        qp_aggregate *sums = qp_execution_sums(e);
        qp_change_begins(sums);
        qp_aggregate_take_out(sums, settled_ns);
        qp_change_ends(sums);
    }
}

static void put_in(qp_execution *e)
{
    if (is_settled(e) && e->settled_ns < 0) {
        bool is_carried = e->generation != qp_aggregates_generation;
        qp_aggregate *sums = qp_execution_sums(e);
        qp_change_begins(sums);
        qp_aggregate_put_in(sums, e->duration_ns, is_carried);
        qp_change_ends(sums);
        qp_release_store(&e->settled_ns, e->duration_ns);
    }
}

void qp_executions_take_out(void)
{
    running.count = qp_counters_running(running.keys, MOST_RUNNING);
    qp_executions_visit(take_out);
}

void qp_executions_put_in(void)
{
    qp_executions_visit(put_in);
}
