#include "counters/connections.h"

#include <pthread.h>
#include <string.h>

#include "counters/pending_counters.h"
#include "runtime/allocation.h"
#include "runtime/assertion.h"
#include "runtime/compiler.h"
#include "runtime/index.h"

enum {
    TRACKERS = 16384, /* maximum number of open connections whose statements are counted */
    CHAINS = 4096
};

static struct {
    pthread_mutex_t lock;               /* guards the other fields; never held while waiting */
    qp_traced_connection **connections; /* each allocated when it is first needed, and never
                                         * freed */
    uint32_t chains[CHAINS]; /* first record for each hash of a connection: 1 + its number; 0:
                              * none */
    uint32_t free;           /* first free record: 1 + its number; 0: none */
    uint32_t used;
    uint64_t last_serial;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool qp_traced_connections_start(void)
{
    if (!state.connections) {
        state.connections = qp_allocate(TRACKERS, sizeof *state.connections);
    }
    return state.connections != NULL;
}

static uint32_t *hash_chain(const void *db)
{
    return &state.chains[((uint64_t)(uintptr_t)db * QP_GOLDEN_RATIO >> 48) % CHAINS];
}

/* Returns a pointer to the number of a connection's record. The number is in the chain's first
 * element or in the previous record. If the connection has no record, the number is 0, at the end
 * of the chain. */
static uint32_t *record_link(const void *db)
{
    uint32_t *link = hash_chain(db);
    while (*link && state.connections[*link - 1]->db != db) {
        link = &state.connections[*link - 1]->next;
    }
    return link;
}

qp_traced_connection *qp_traced_connection_of(const void *db)
{
    pthread_mutex_lock(&state.lock);
    uint32_t number = db ? *record_link(db) : 0;
    pthread_mutex_unlock(&state.lock);
    return number ? state.connections[number - 1] : NULL;
}

/* Returns the number of an unused record; 0 if all records are in use. */
static uint32_t unused_record(void)
{
    uint32_t number = state.free;
    if (number) {
        state.free = state.connections[number - 1]->next;
    } else if (state.used < TRACKERS) {
        qp_traced_connection *added = qp_allocate(1, sizeof *added);
        if (added) {
            state.connections[state.used] = added;
            number = ++state.used;
        }
    }
    return number;
}

/* A fork while another thread runs this function leaves the chains intact: a free record is removed
 * from the free list before it enters a chain, and leaves its chain before it becomes free. */
qp_traced_connection *qp_traced_connection_new(void *db, uint32_t epoch)
{
    pthread_mutex_lock(&state.lock);
    uint32_t *link = record_link(db);
    uint32_t number = *link; /* not 0 if the trace callback of an earlier connection at this
                              * address was replaced, so that SQLite did not report its closing */
    if (number) {
        qp_release_store(link, state.connections[number - 1]->next);
        link = record_link(db);
    } else {
        number = unused_record();
    }
    qp_traced_connection *taken = number ? state.connections[number - 1] : NULL;
    if (taken) {
        char *path = taken->path;
        qp_statement_block *more = taken->first.more;
        memset(taken, 0, sizeof *taken);
        qp_free(path);
        taken->first.more = more;
        qp_traced_forget_statements(taken);
        taken->db = db;
        taken->epoch = epoch;
        taken->serial = ++state.last_serial;
        qp_release_store(link, number);
    }
    pthread_mutex_unlock(&state.lock);
    return taken;
}

void qp_traced_connection_release(qp_traced_connection *traced)
{
    pthread_mutex_lock(&state.lock);
    uint32_t *link = traced->db ? record_link(traced->db) : NULL;
    uint32_t number = link ? *link : 0;
    traced->db = NULL;
    if (number) {
        qp_release_store(link, traced->next);
        traced->next = state.free;
        qp_release_store(&state.free, number);
    }
    pthread_mutex_unlock(&state.lock);
}

char *qp_copy_path(const char *path)
{
    size_t length = path ? strlen(path) : 0;
    char *copy = length ? qp_allocate(length + 1, 1) : NULL;
    return copy ? memcpy(copy, path, length) : NULL;
}

char *qp_traced_path(uint64_t serial, bool *is_known)
{
    char *copy = NULL;
    *is_known = false;
    pthread_mutex_lock(&state.lock);
    for (uint32_t i = 0; i < state.used && !*is_known; i++) {
        const qp_traced_connection *traced = state.connections[i];
        *is_known = traced->serial == serial;
        copy = *is_known ? qp_copy_path(traced->path) : NULL;
    }
    pthread_mutex_unlock(&state.lock);
    return copy;
}

void qp_traced_connections_visit(void (*visit)(qp_traced_connection *traced))
{
    pthread_mutex_lock(&state.lock);
    for (uint32_t i = 0; i < state.used; i++) {
        if (state.connections[i]->db) {
            visit(state.connections[i]);
        }
    }
    pthread_mutex_unlock(&state.lock);
}

void qp_traced_for_each_statement(qp_traced_connection *traced,
                                  void (*visit)(qp_traced_connection *, qp_counted_statement *))
{
    for (qp_statement_block *block = &traced->first; block; block = block->more) {
        for (int i = 0; i < QP_BLOCK_STATEMENTS; i++) {
            if (block->statements[i].statement) {
                visit(traced, &block->statements[i]);
            }
        }
    }
}

void *qp_traced_owned_statement(const qp_traced_connection *traced)
{
    for (const qp_statement_block *block = &traced->first; block; block = block->more) {
        for (int i = 0; i < QP_BLOCK_STATEMENTS; i++) {
            void *held = block->statements[i].held;
            if (held) {
                return held;
            }
        }
    }
    return NULL;
}

void qp_traced_forget_statements(qp_traced_connection *traced)
{
    for (qp_statement_block *block = &traced->first; block; block = block->more) {
        memset(block->statements, 0, sizeof block->statements);
    }
}

/* Returns the QP_CONNECTION_WAYS slots of a block in which a statement can be. */
static qp_counted_statement *statement_set(qp_statement_block *block, const void *statement)
{
    uint64_t hash = (uint64_t)(uintptr_t)statement * QP_GOLDEN_RATIO;
    return &block->statements[(hash >> 60 & (QP_CONNECTION_SETS - 1)) * QP_CONNECTION_WAYS];
}

qp_counted_statement *qp_traced_find_statement(qp_traced_connection *traced, const void *statement)
{
    if (traced->last && traced->last->statement == statement) {
        return traced->last;
    }
    for (qp_statement_block *block = &traced->first; block; block = block->more) {
        qp_counted_statement *set = statement_set(block, statement);
        for (int way = 0; way < QP_CONNECTION_WAYS; way++) {
            if (set[way].statement == statement) {
                return &set[way];
            }
        }
    }
    return NULL;
}

void qp_traced_connections_after_fork(void)
{
    state.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* the thread that held the lock may
                                                              * not exist in the child */
}

enum { VM_STEPS, FULL_SCAN_STEPS, SORTS, AUTOMATIC_INDEXES, REPREPARES };

static const int counter_codes[QP_COUNTERS] = {
    [VM_STEPS] = QP_STMTSTATUS_VM_STEP,     [FULL_SCAN_STEPS] = QP_STMTSTATUS_FULLSCAN_STEP,
    [SORTS] = QP_STMTSTATUS_SORT,           [AUTOMATIC_INDEXES] = QP_STMTSTATUS_AUTOINDEX,
    [REPREPARES] = QP_STMTSTATUS_REPREPARE,
};

uint32_t qp_traced_page_fetches(const qp_traced_connection *t)
{
    int hits = 0, misses = 0, peak;
    t->sqlite->db_status(t->db, QP_DBSTATUS_CACHE_HIT, &hits, &peak, 0);
    t->sqlite->db_status(t->db, QP_DBSTATUS_CACHE_MISS, &misses, &peak, 0);
    return (uint32_t)hits + (uint32_t)misses;
}

#ifdef QP_FAULT_INJECTION
/* Returns whether a statement of a connection is not finalized yet. */
static bool is_living(const qp_traced_connection *t, const void *statement)
{
    void *living = t->sqlite->next_stmt(t->db, NULL);
    while (living && living != statement) {
        living = t->sqlite->next_stmt(t->db, living);
    }
    return living != NULL;
}
#endif

qp_counters qp_traced_take_counters(qp_traced_connection *t, qp_counted_statement *s)
{
    QP_ASSERT(is_living(t, s->statement));
    uint32_t done[QP_COUNTERS];
    for (int i = 0; i < QP_COUNTERS; i++) {
        uint32_t now = (uint32_t)t->sqlite->stmt_status(s->statement, counter_codes[i], 0);
        done[i] = now - s->base[i];
        s->base[i] = now;
    }
    t->reprepared = t->reprepared || done[REPREPARES];
    qp_counters counters = {
        .vm_steps = done[VM_STEPS],
        .full_scan_steps = done[FULL_SCAN_STEPS],
        .sorts = done[SORTS],
        .automatic_indexes = done[AUTOMATIC_INDEXES],
        .page_fetches = s->page_fetches,
        .counted = s->executions,
        .page_fetch_samples = s->page_fetch_samples,
    };
    s->executions = s->page_fetches = s->page_fetch_samples = 0;
    return counters;
}

/* Reads counters without the GIL, and keeps them for the next probed call. */
void qp_traced_keep_counters(qp_traced_connection *t, qp_counted_statement *s)
{
    qp_counters counters = qp_traced_take_counters(t, s);
    qp_pending_counters_add(&s->key, &counters);
}

/* Stops counting page fetches. As long as the statement has more rows, fetches of other statements
 * would count for it; `over` means that this run has ended. */
void qp_traced_end_page_count(qp_traced_connection *t, bool over)
{
    qp_counted_statement *s = t->sampled;
    t->sampled = NULL;
    if (s && (over || (!s->transient && !t->sqlite->stmt_busy(s->statement)))) {
        s->page_fetches += (qp_traced_page_fetches(t) - t->pages_at_start) & 0x7fffffff;
        s->page_fetch_samples += !t->is_further_row;
    }
}

static uint32_t run_count(const qp_traced_connection *t, void *statement)
{
    return (uint32_t)t->sqlite->stmt_status(statement, QP_STMTSTATUS_RUN, 0);
}

/* Returns a slot for a new statement: a free slot, the slot of an ended statement, or a slot in a
 * new block. If all blocks are in use, replaces a statement, whose counters are read first unless
 * it is still running. */
static qp_counted_statement *new_statement_slot(qp_traced_connection *t, const void *statement)
{
    qp_counted_statement *over = NULL;
    qp_statement_block *last = NULL;
    int blocks = 0;
    for (qp_statement_block *block = &t->first; block; block = block->more, blocks++) {
        qp_counted_statement *set = statement_set(block, statement);
        for (int way = 0; way < QP_CONNECTION_WAYS; way++) {
            if (!set[way].statement) {
                return &set[way];
            }
            over = set[way].is_over ? &set[way] : over;
        }
        last = block;
    }
    if (over) {
        t->evictions++;
        return over;
    }
    qp_statement_block *added =
        blocks < QP_CONNECTION_BLOCKS ? qp_allocate(1, sizeof *added) : NULL;
    if (added) {
        qp_release_store(&last->more, added);
        return statement_set(added, statement);
    }
    qp_counted_statement *s =
        &statement_set(&t->first, statement)[t->evictions++ % QP_CONNECTION_WAYS];
    if (!s->transient && !t->sqlite->stmt_busy(s->statement)) {
        qp_traced_keep_counters(t, s);
    }
    return s;
}

qp_counted_statement *qp_traced_reserve_statement(qp_traced_connection *t, void *statement,
                                                  const qp_key *key, bool transient)
{
    qp_counted_statement *s = new_statement_slot(t, statement);
    if (t->sampled == s) {
        t->sampled = NULL;
    }
    *s = (qp_counted_statement){.statement = statement, .transient = transient, .key = *key};
    if (transient) {
        s->runs = run_count(t, statement);
    }
    return s;
}

void qp_traced_end_statement(qp_traced_connection *t, qp_counted_statement *s)
{
    uint32_t runs = run_count(t, s->statement);
    if (!t->traces_ends || runs == s->runs) { /* equal if this SQLite does not count runs */
        qp_traced_clear_slot(s);
        return;
    }
    s->is_over = true;
    s->runs = runs;
}

void qp_traced_present_counters(const qp_traced_connection *t, void *statement,
                                uint32_t base[QP_COUNTERS])
{
    for (int i = 0; i < QP_COUNTERS; i++) {
        base[i] = (uint32_t)t->sqlite->stmt_status(statement, counter_codes[i], 0);
    }
}
