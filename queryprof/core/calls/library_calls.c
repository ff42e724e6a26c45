#include "calls/library_calls.h"

#include <string.h>

#include "sums/library_times.h"

enum {
    TIMED = 2 * QP_LIBRARY_CALLS_ENOUGH, /* calls */
    KINDS = 16 * TIMED                   /* statements and paths in them, all together */
};

/* One of so many is left out, the longest ones: a garbage collection or another thread came
 * between. None of fewer than FEW. */
enum { LEFT_OUT_OF = 16, FEW = 4 };

/* The executions of a statement and path in one call. */
typedef struct {
    qp_key key;
    int64_t count;
} kind;

typedef struct {
    int64_t ns;
    int64_t executions;
    int kinds_end; /* of its kinds, which begin after those of the call before */
} timed_call;

static struct {
    int count; /* of calls that have ended; one more is in progress */
    timed_call calls[TIMED + 1];
    int kind_count;
    kind kinds[KINDS];
} table;

static bool is_same(const qp_key *a, const qp_key *b)
{
    return a->statement == b->statement && a->path == b->path;
}

/* Kinds of the calls that have ended. */
static int kinds_before(void)
{
    return table.count ? table.calls[table.count - 1].kinds_end : 0;
}

void qp_library_calls_clear(void)
{
    table.count = table.kind_count = 0;
    table.calls[0] = (timed_call){0};
}

void qp_library_calls_note(const qp_key *key)
{
    int at = kinds_before();
    while (at < table.kind_count && !is_same(&table.kinds[at].key, key)) {
        at++;
    }
    table.calls[table.count].executions++;
    if (at == table.kind_count && at < KINDS) {
        table.kinds[table.kind_count++] = (kind){*key, 0};
    }
    if (at < KINDS) {
        table.kinds[at].count++;
    }
}

bool qp_library_calls_end(int64_t ns)
{
    timed_call *call = &table.calls[table.count];
    if (!call->executions) {
        return false;
    }
    call->ns = ns;
    call->kinds_end = table.kind_count;
    table.calls[++table.count] = (timed_call){0};
    return table.count == TIMED || table.kind_count > KINDS / 2;
}

void qp_library_calls_drop(void)
{
    table.calls[table.count] = (timed_call){0};
    table.kind_count = kinds_before();
}

void qp_library_calls_drop_ended(void)
{
    int ended = kinds_before();
    table.kind_count -= ended;
    memmove(table.kinds, table.kinds + ended, (size_t)table.kind_count * sizeof *table.kinds);
    table.calls[0] = table.calls[table.count];
    table.count = 0;
}

/* A call in which a statement was executed. */
typedef struct {
    const timed_call *call;
    int64_t count;
} sample;

/* Takes the calls in which a statement and path was executed, shortest first. Returns how many. */
static int take_samples(const qp_key *key, sample found[TIMED])
{
    int count = 0, at_kind = 0;
    for (int i = 0; i < table.count; i++) {
        const timed_call *call = &table.calls[i];
        for (; at_kind < call->kinds_end; at_kind++) {
            kind *one = &table.kinds[at_kind];
            if (!one->count || !is_same(&one->key, key)) {
                continue;
            }
            int at = count++;
            for (; at && found[at - 1].call->ns > call->ns; at--) {
                found[at] = found[at - 1];
            }
            found[at] = (sample){call, one->count};
            one->count = 0; /* taken */
        }
    }
    return count;
}

void qp_library_calls_flush(void)
{
    for (int at = 0, ended = kinds_before(); at < ended; at++) {
        if (!table.kinds[at].count) {
            continue;
        }
        sample found[TIMED];
        int count = take_samples(&table.kinds[at].key, found);
        qp_library_row *row = qp_library_times_of(&table.kinds[at].key);
        int left_out = count < FEW ? 0 : (count + LEFT_OUT_OF - 1) / LEFT_OUT_OF;
        for (int i = 0; row && i < count - left_out; i++) {
            row->calls++;
            row->executions += found[i].count;
            row->others += found[i].call->executions - found[i].count;
            row->ns += found[i].call->ns;
        }
    }
    qp_library_calls_drop_ended();
}
