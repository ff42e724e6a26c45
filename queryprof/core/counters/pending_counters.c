#include "counters/pending_counters.h"

#include <Python.h>
#include <pthread.h>
#include <string.h>

#include "context/spans.h"
#include "statements/statements.h"
#include "sums/aggregates.h"
#include "threads/threads.h"

enum { PENDING = 512, PENDING_DUE = 16 };

typedef struct {
    qp_key key;
    qp_counters counters;
} pending_counters;

static struct {
    pthread_mutex_t lock; /* never held while waiting for anything */
    pending_counters pending[PENDING];
    int count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t lost; /* guarded by the lock of the table */

volatile bool qp_pending_counters_due = false;

void qp_pending_counters_after_fork(void)
{
    table.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* the thread that held the lock may
                                                              * not exist in the child */
    table.count = 0;
    qp_pending_counters_due = false;
    lost = 0;
}

static bool has_any_count(const qp_counters *counters)
{
    return counters->counted || counters->vm_steps || counters->page_fetch_samples;
}

void qp_pending_counters_add(const qp_key *key, const qp_counters *counters)
{
    if (!has_any_count(counters)) {
        return; /* the counters were read before */
    }
    pthread_mutex_lock(&table.lock);
    pending_counters *last = table.count ? &table.pending[table.count - 1] : NULL;
    if (last && qp_same_key(&last->key, key)) {
        qp_counters_add(&last->counters, counters);
    } else if (table.count < PENDING) {
        table.pending[table.count++] = (pending_counters){*key, *counters};
        qp_pending_counters_due = table.count >= PENDING_DUE;
    } else {
        lost += counters->counted ? counters->counted : 1;
    }
    pthread_mutex_unlock(&table.lock);
}

void qp_pending_counters_change_statement(const qp_key *from, uint32_t statement)
{
    pthread_mutex_lock(&table.lock);
    for (int i = 0; i < table.count; i++) {
        if (qp_same_key(&table.pending[i].key, from)) {
            table.pending[i].key.statement = statement;
        }
    }
    pthread_mutex_unlock(&table.lock);
}

void qp_counters_add_to_key(qp_key key, const qp_counters *counters)
{
    /* The key may belong to an earlier recording, if a callback ran while one recording ended and
     * the next began. */
    bool is_known = qp_statement_is_known(key.statement) && qp_thread_name_is_known(key.thread) &&
                    qp_span_name_is_known(key.span);
    if (is_known && has_any_count(counters)) {
        qp_aggregate_add_counters(qp_aggregate_of(&key), counters);
    }
}

void qp_pending_counters_collect(void)
{
    static pending_counters taken[PENDING]; /* used only with the GIL */
    pthread_mutex_lock(&table.lock);
    int count = table.count;
    memcpy(taken, table.pending, (size_t)count * sizeof *taken);
    table.count = 0;
    qp_pending_counters_due = false;
    pthread_mutex_unlock(&table.lock);
    for (int i = 0; i < count; i++) {
        qp_counters_add_to_key(taken[i].key, &taken[i].counters);
    }
}

uint64_t qp_counters_lost_statements(void)
{
    return lost;
}
