#include "calls/file_work_end.h"

#include <string.h>

#include "counters/database_paths.h"
#include "counters/locks.h"
#include "memory/texts.h"
#include "statements/statements.h"
#include "sums/file_sums.h"
#include "sums/lock_sums.h"

static qp_text database_text(uint32_t path_number)
{
    const char *path = qp_database_path_text(path_number);
    return qp_text_find_or_add(path, strlen(path));
}

static void add_lock_holds(qp_file_work *work, const qp_key *key, int64_t changed_rows)
{
    for (int i = 0; i < work->holds; i++) {
        qp_call_hold *hold = &work->hold[i];
        hold->sums.changed_rows += hold->is_own ? changed_rows : 0;
        const qp_lock lock = {.kind = hold->kind,
                              .database = database_text(hold->path),
                              .key = hold->is_own ? *key : hold->key,
                              .end_statement = key->statement,
                              .end_path = key->path};
        qp_lock_sums_add(&lock, &hold->sums);
        qp_lock_event_add(&lock, &hold->longest);
    }
}

static void add_lock_hold(const qp_call_hold *hold)
{
    const qp_lock lock = {.kind = hold->kind,
                          .database = database_text(hold->path),
                          .key = hold->key,
                          .end_statement = QP_STATEMENT_UNKNOWN};
    qp_lock_sums_add(&lock, &hold->sums);
    qp_lock_event_add(&lock, &hold->longest);
}

void qp_lock_sums_update(bool with_held)
{
    qp_locks_collect(add_lock_hold, with_held);
}

static void add_file_work(const qp_call *call, qp_file_work *work, int64_t changed_rows)
{
    qp_key key = {.statement = QP_STATEMENT_UNKNOWN, .thread = call->thread->number};
    if (call->execution) {
        key = call->execution->meter.key;
    }
    key.operation = call->active.operation;
    qp_file_sums_add(&key, &work->sums);
    add_lock_holds(work, &key, changed_rows);
    for (int i = 0; i < work->waits; i++) {
        const qp_call_wait *one = &work->wait[i];
        const qp_lock wait = {.kind = QP_LOCK_WAIT,
                              .database = database_text(one->path),
                              .key = key,
                              .end_statement = key.statement,
                              .end_path = key.path};
        qp_lock_event_add(&wait, &one->time);
    }
}

void qp_call_end_file_work(qp_call *call, int64_t changed_rows)
{
    qp_file_work *work = &call->active.work;
    bool is_recorded = call->recording == qp_recording;
    if (is_recorded && !(call->execution && call->execution->ignored)) {
        add_file_work(call, work, changed_rows);
    }
    qp_file_work_clear(work);
}
