#include "calls/carry_over.h"

#include <string.h>

#include "calls/executions.h"
#include "counters/readings.h"
#include "runtime/compiler.h"
#include "runtime/index.h"

enum { SLOTS = 8192, MAX_RUNNING = SLOTS / 2 }; /* at most as many keys as executions */

/* The keys of statements that may still be running, by the keys' hash. */
static struct {
    qp_key keys[SLOTS];
    bool is_used[SLOTS];
    int count;
} running_keys;

/* Returns the slot of a key, or the free slot for the key. */
static uint32_t running_key_slot(const qp_key *key)
{
    uint32_t slot = (uint32_t)qp_hash_bytes((const char *)key, sizeof *key) % SLOTS;
    while (running_keys.is_used[slot] && !qp_same_key(&running_keys.keys[slot], key)) {
        slot = (slot + 1) % SLOTS;
    }
    return slot;
}

static void add_running_key(const qp_key *key)
{
    uint32_t slot = running_key_slot(key);
    if (!running_keys.is_used[slot] && running_keys.count < MAX_RUNNING) {
        running_keys.keys[slot] = *key;
        running_keys.is_used[slot] = true;
        running_keys.count++;
    }
}

static bool is_running_key(const qp_key *key)
{
    return running_keys.is_used[running_key_slot(key)];
}

static bool is_settled(const qp_execution *e)
{
    return e->stage == QP_STAGE_SETTLED && !e->ignored;
}

static void remove_from_distribution(qp_execution *e)
{
    bool goes_on = is_settled(e) && (e->in_use || (e->cursor && is_running_key(&e->meter.key)));
    if (goes_on && e->generation == qp_aggregates_generation && e->settled_ns >= 0) {
        int64_t settled_ns = e->settled_ns;
        /* First, so that a reader of a killed process's memory counts the execution while the
         * histogram lacks it. */
        qp_release_store(&e->settled_ns, -1);
        qp_aggregate *sums = qp_execution_aggregate(e);
        qp_change_begins(sums);
        qp_aggregate_remove_execution(sums, settled_ns);
        qp_change_ends(sums);
    }
}

static void add_to_distribution(qp_execution *e)
{
    if (is_settled(e) && e->settled_ns < 0) {
        bool is_carried = e->generation != qp_aggregates_generation;
        qp_aggregate *sums = qp_execution_aggregate(e);
        qp_change_begins(sums);
        qp_aggregate_restore_execution(sums, e->duration_ns, is_carried);
        qp_change_ends(sums);
        qp_release_store(&e->settled_ns, e->duration_ns);
    }
}

void qp_unfinished_executions_remove(void)
{
    memset(running_keys.is_used, 0, sizeof running_keys.is_used);
    running_keys.count = 0;
    qp_counters_visit_running(add_running_key);
    qp_executions_visit(remove_from_distribution);
}

void qp_unfinished_executions_restore(void)
{
    qp_executions_visit(add_to_distribution);
}
