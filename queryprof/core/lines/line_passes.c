#include "lines/line_passes.h"

#include <string.h>

#include "lines/event_cost.h"
#include "sums/line_times.h"

enum {
    TIMED = 16,        /* maximum number of passes per watch */
    KINDS = 16 * TIMED /* maximum number of pairs of statement and path in these passes */
};

/* The longest passes are skipped (one for every LEFT_OUT_OF passes, rounded up), because a garbage
 * collection or another thread may have interrupted them. If there are fewer than FEW passes, all
 * of them count. */
enum { LEFT_OUT_OF = 16, FEW = 4 };

/* The executions of a statement and path in one pass. */
typedef struct {
    qp_key key;
    int64_t count;
    int64_t rows, last_rows; /* rows that the line has fetched; rows of the last fetch */
    bool is_lazy;            /* some rows were fetched in passes that were joined */
} kind;

typedef struct {
    int64_t ns;
    int64_t executions;
    int kinds_end; /* end of this pass's kinds, which follow the kinds of the previous pass */
    bool is_partial;
    int64_t joined;    /* number of passes without executions that were added */
    int64_t joined_ns; /* their time */
} timed_pass;

static struct {
    int count; /* number of ended passes; one more pass is in progress */
    timed_pass passes[TIMED + 1];
    int kind_count;
    kind kinds[KINDS];
    bool is_separate; /* the pass in progress is separate from the pass before */
} table;

static bool is_same_query(const qp_key *a, const qp_key *b)
{
    return a->statement == b->statement && a->path == b->path;
}

/* Returns the index of the first kind of a pass. */
static int first_kind(int pass)
{
    return pass ? table.passes[pass - 1].kinds_end : 0;
}

/* Returns the number of kinds in the ended passes. */
static int ended_kind_count(void)
{
    return first_kind(table.count);
}

void qp_line_passes_clear(void)
{
    table.count = table.kind_count = 0;
    table.passes[0] = (timed_pass){0};
    table.is_separate = true;
}

/* Returns the index of this statement and path among the kinds that begin at `at`; kind_count if
 * the pair is new. */
static int find_kind(int at, const qp_key *key)
{
    while (at < table.kind_count && !is_same_query(&table.kinds[at].key, key)) {
        at++;
    }
    return at;
}

int64_t qp_line_passes_execution_count(const qp_key *key)
{
    int at = find_kind(ended_kind_count(), key);
    return at < table.kind_count ? table.kinds[at].count : 0;
}

void qp_line_passes_add_execution(const qp_key *key)
{
    table.passes[table.count].executions++;
    if (!key) {
        return;
    }
    int at = find_kind(ended_kind_count(), key);
    if (at == table.kind_count && at < KINDS) {
        table.kinds[table.kind_count++] = (kind){.key = *key};
    }
    if (at < KINDS) {
        table.kinds[at].count++;
    }
}

bool qp_line_passes_are_joined(void)
{
    return table.count && !table.is_separate && !table.passes[table.count].executions;
}

void qp_line_passes_set_rows(const qp_key *key, int64_t rows)
{
    bool is_joined = qp_line_passes_are_joined();
    int at = find_kind(first_kind(table.count - is_joined), key);
    if (at < table.kind_count && rows > table.kinds[at].rows) {
        table.kinds[at].last_rows = rows - table.kinds[at].rows;
        table.kinds[at].rows = rows;
        table.kinds[at].is_lazy |= is_joined;
    }
}

bool qp_line_passes_has_executed(void)
{
    return table.passes[table.count].executions > 0;
}

bool qp_line_passes_end_current(int64_t ns, bool is_partial)
{
    timed_pass *pass = &table.passes[table.count];
    if (!pass->executions) {
        if (qp_line_passes_are_joined()) {
            pass[-1].ns += ns;
            pass[-1].joined++;
            pass[-1].joined_ns += ns;
        }
        return false;
    }
    if (table.count == TIMED) { /* an additional pass shows that the last counted pass has ended,
                                 * with all its rows */
        qp_line_passes_forget_current();
        return true;
    }
    pass->ns = ns;
    pass->kinds_end = table.kind_count;
    pass->is_partial = is_partial;
    table.passes[++table.count] = (timed_pass){0};
    table.is_separate = false;
    return table.kind_count > KINDS / 2;
}

void qp_line_passes_begin_call(void)
{
    table.is_separate = true;
}

void qp_line_passes_forget_current(void)
{
    table.passes[table.count] = (timed_pass){0};
    table.kind_count = ended_kind_count();
}

/* Forgets the ended passes. */
static void forget_ended_passes(void)
{
    int ended = ended_kind_count();
    table.kind_count -= ended;
    memmove(table.kinds, table.kinds + ended, (size_t)table.kind_count * sizeof *table.kinds);
    table.passes[0] = table.passes[table.count];
    table.count = 0;
    table.is_separate = true;
}

/* A pass in which a statement was executed. */
typedef struct {
    const timed_pass *pass;
    int64_t count, rows, last_rows;
    bool is_lazy;
} sample;

/* Takes the passes in which a statement and path was executed: first the complete passes, then the
 * partial passes, each sorted by duration. Returns the number of complete passes; if there are
 * none, the number of partial passes. */
static int collect_samples(const qp_key *key, sample found[TIMED])
{
    int count = 0, whole = 0, at_kind = 0;
    for (int i = 0; i < table.count; i++) {
        const timed_pass *pass = &table.passes[i];
        for (; at_kind < pass->kinds_end; at_kind++) {
            kind *one = &table.kinds[at_kind];
            if (!one->count || !is_same_query(&one->key, key)) {
                continue;
            }
            int at = count++;
            whole += !pass->is_partial;
            for (; at && (found[at - 1].pass->is_partial > pass->is_partial ||
                          (found[at - 1].pass->is_partial == pass->is_partial &&
                           found[at - 1].pass->ns > pass->ns));
                 at--) {
                found[at] = found[at - 1];
            }
            found[at] = (sample){pass, one->count, one->rows, one->last_rows, one->is_lazy};
            one->count = 0; /* taken */
        }
    }
    return whole ? whole : count;
}

/* Adds the rows for which a loop has passed its line in a pass, and their time. A line that is
 * passed more often than there are rows does not loop over the rows. */
static void add_loop(qp_line_time_row *row, const sample *one)
{
    const timed_pass *pass = one->pass;
    if (!one->is_lazy || pass->joined > one->rows + 1 || qp_event_cost_is_long()) {
        return;
    }
    int64_t least = one->rows - one->last_rows; /* the last fetch may return more rows than used */
    int64_t used = pass->joined > least ? pass->joined : least;
    row->loop_rows += used < one->rows ? used : one->rows;
    row->loop_ns += pass->joined_ns;
}

void qp_line_passes_flush(void)
{
    for (int at = 0, ended = ended_kind_count(); at < ended; at++) {
        if (!table.kinds[at].count) {
            continue;
        }
        sample found[TIMED] = {0};
        int count = collect_samples(&table.kinds[at].key, found);
        qp_line_time_row *row = qp_line_times_row(&table.kinds[at].key);
        int left_out = count < FEW ? 0 : (count + LEFT_OUT_OF - 1) / LEFT_OUT_OF;
        for (int i = 0; row && i < count - left_out; i++) {
            row->passes++;
            row->executions += found[i].count;
            row->others += found[i].pass->executions - found[i].count;
            row->ns += found[i].pass->ns;
            add_loop(row, &found[i]);
        }
        for (int i = count - left_out; row && i < TIMED && found[i].pass; i++) {
            if (found[i].pass->ns > row->left_out_ns) {
                row->left_out_ns = found[i].pass->ns;
            }
        }
    }
    forget_ended_passes();
}
