#include "sums/aggregates.h"

#include "memory/region.h"
#include "runtime/allocation.h"
#include "runtime/compiler.h"
#include "runtime/index.h"
#include "runtime/periodic_work.h"
#include "stacks/stacks.h"
#include "statements/statements.h"
#include "threads/threads.h"

enum {
    SHARED_THREADS = QP_AGGREGATES / 4 * 3, /* with this many entries, new keys get the thread
                                             * "(other)" */
    SHARED_PATHS = QP_AGGREGATES / 8 * 7,   /* with this many entries, new keys also get the call
                                             * path "(other)" */
    NEARLY_FULL = SHARED_THREADS - 1024,    /* the margin is larger than the number of entries that
                                             * a call and its flush add */
    SLOTS = 2 * 65536,
    SERVING = QP_NEXT - QP_FETCHONE + 1
};

static struct {
    qp_index index;               /* finds an entry by its key */
    uint32_t (*serving)[SERVING]; /* serving[entry][operation]: the entry with the same key but
                                   * this operation; 0: not looked up */
    qp_aggregate *last;           /* the entry found last, because loops use one entry */
} table;

uint32_t qp_aggregates_generation;

static qp_aggregate *aggregate_rows(void)
{
    return qp_first_row(QP_AGGREGATE_ROWS);
}

uint32_t qp_aggregate_number(const qp_aggregate *entry)
{
    return (uint32_t)(entry - aggregate_rows());
}

static uint64_t hash_key(const qp_key *key)
{
    uint64_t words[2];
    _Static_assert(sizeof words == sizeof *key, "a key has no padding");
    memcpy(words, key, sizeof words);
    uint64_t hash = (words[0] ^ (words[1] * 0xC2B2AE3D27D4EB4Fu)) * QP_GOLDEN_RATIO;
    return hash ^ (hash >> 32);
}

/* Adds an entry. Returns NULL if there is no room. */
static qp_aggregate *add_entry(const qp_key *key)
{
    static const qp_extremes none = {.min_ns = INT64_MAX};
    uint32_t number = qp_rows_add(QP_AGGREGATE_ROWS, 1);
    if (number == UINT32_MAX) {
        return NULL;
    }
    qp_aggregate *added = &aggregate_rows()[number];
    *added = (qp_aggregate){.mark = qp_mark - 1, .key = *key, .now = none, .before = none};
    return added;
}

/* Adds the first entries, one for each operation. They contain the calls that do not fit. */
static bool reserve_others(void)
{
    bool reserved = true;
    for (int operation = 0; operation < QP_OPERATIONS; operation++) {
        const qp_key other = {.statement = QP_STATEMENT_OTHER, .operation = (uint32_t)operation};
        reserved = reserved && add_entry(&other);
    }
    return reserved;
}

bool qp_aggregates_start(void)
{
    table.serving = qp_allocate(QP_AGGREGATES, sizeof *table.serving);
    return table.serving && qp_index_start(&table.index, SLOTS) && reserve_others();
}

void qp_aggregates_stop(void)
{
    qp_index_stop(&table.index);
    qp_free(table.serving);
    memset(&table, 0, sizeof table);
    qp_aggregates_generation++;
}

bool qp_aggregates_have_calls(void)
{
    for (uint32_t i = 0; i < qp_row_count(QP_AGGREGATE_ROWS); i++) {
        if (aggregate_rows()[i].count) {
            return true;
        }
    }
    return false;
}

static qp_aggregate *find_or_add(const qp_key *key)
{
    uint32_t slot = qp_index_begin(&table.index, hash_key(key));
    for (; table.index.slots[slot]; slot = qp_index_next(&table.index, slot)) {
        qp_aggregate *known = &aggregate_rows()[table.index.slots[slot] - 1];
        if (qp_same_key(&known->key, key)) {
            table.last = known;
            return known;
        }
    }
    uint32_t count = qp_row_count(QP_AGGREGATE_ROWS);
    bool has_room =
        count < SHARED_THREADS ||
        (key->thread == QP_THREAD_OTHER && (count < SHARED_PATHS || key->path == QP_PATH_OTHER));
    qp_aggregate *added = has_room ? add_entry(key) : NULL;
    if (added) {
        table.index.slots[slot] = count + 1;
    }
    if (count == NEARLY_FULL) {
        qp_periodic_request();
    }
    return added;
}

static QP_COLD qp_aggregate *fold_into_shared(const qp_key *key)
{
    qp_key shared = *key;
    shared.thread = QP_THREAD_OTHER;
    qp_aggregate *found = find_or_add(&shared);
    if (!found) {
        shared.path = QP_PATH_OTHER;
        found = find_or_add(&shared);
    }
    qp_head->folded_calls++;
    return found ? found : &aggregate_rows()[key->operation];
}

qp_aggregate *qp_aggregate_of(const qp_key *key)
{
    if (table.last && qp_same_key(&table.last->key, key)) {
        return table.last;
    }
    qp_aggregate *found = find_or_add(key);
    return found ? found : fold_into_shared(key);
}

qp_aggregate *qp_aggregate_of_fetch(const qp_aggregate *began, qp_operation operation)
{
    uint32_t *number = &table.serving[qp_aggregate_number(began)][operation - QP_FETCHONE];
    if (!*number) {
        qp_key key = began->key;
        key.operation = operation;
        *number = qp_aggregate_number(qp_aggregate_of(&key));
    }
    return &aggregate_rows()[*number];
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void qp_aggregate_renew_extremes(qp_aggregate *entry)
{
    qp_extremes *now = &entry->now, *before = &entry->before;
    before->min_ns = smaller(before->min_ns, now->min_ns);
    before->max_ns = larger(before->max_ns, now->max_ns);
    before->execution_max_ns = larger(before->execution_max_ns, now->execution_max_ns);
    *now = (qp_extremes){.min_ns = INT64_MAX};
}

void qp_aggregate_move_duration(qp_aggregate *entry, int64_t from_ns, int64_t to_ns)
{
    qp_aggregate_before_change(entry);
    if (to_ns > entry->now.execution_max_ns) {
        entry->now.execution_max_ns = to_ns;
    }
    entry->execution_sum_sq_ns2 += (double)to_ns * (double)to_ns;
    qp_histogram_count(&entry->histogram, to_ns); /* first, so that no execution is missing if the
                                                   * process is killed */
    if (from_ns >= 0) {
        entry->execution_sum_sq_ns2 -= (double)from_ns * (double)from_ns;
        qp_histogram_uncount(&entry->histogram, from_ns);
    }
}

void qp_aggregate_remove_execution(qp_aggregate *entry, int64_t ns)
{
    qp_aggregate_before_change(entry);
    entry->execution_sum_sq_ns2 -= (double)ns * (double)ns;
    qp_histogram_uncount(&entry->histogram, ns);
}

void qp_aggregate_restore_execution(qp_aggregate *entry, int64_t ns, bool is_carried)
{
    entry->carried += is_carried;
    qp_aggregate_move_duration(entry, -1, ns);
}

void qp_aggregate_add_counters(qp_aggregate *entry, const qp_counters *counters)
{
    qp_aggregate_before_change(entry);
    qp_counters_add(&entry->counters, counters);
}

void qp_aggregates_clear(void)
{
    uint32_t count = qp_row_count(QP_AGGREGATE_ROWS);
    for (uint32_t number = QP_OPERATIONS; number < count; number++) { /* mostly few rows */
        uint32_t slot = qp_index_begin(&table.index, hash_key(&aggregate_rows()[number].key));
        while (table.index.slots[slot] != number + 1) {
            slot = qp_index_next(&table.index, slot);
        }
        table.index.slots[slot] = 0;
    }
    memset(table.serving, 0, count * sizeof *table.serving);
    qp_rows_clear(QP_AGGREGATE_ROWS);
    table.last = NULL;
    qp_aggregates_generation++;
    reserve_others();
}

bool qp_aggregates_nearly_full(void)
{
    return qp_row_count(QP_AGGREGATE_ROWS) >= NEARLY_FULL;
}
