#include "sqlite/explain.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/allocation.h"
#include "runtime/assertion.h"
#include "runtime/clock.h"
#include "sqlite/changes_value.h"
#include "sqlite/library.h"

enum { STEPS = 100, DETAIL_BYTES = 200, DEPTH = 20, INDENTATION = 2 };

typedef struct {
    int id;
    int parent; /* id of the step to which this step belongs; 0 if none */
    char detail[DETAIL_BYTES];
} step;

typedef struct {
    int count;
    step steps[STEPS];
} plan;

/* Copies a text as one line, even if names of the program's tables contain line breaks. */
static void copy_detail(char *to, const char *from)
{
    size_t length = 0;
    for (; from && from[length] && length < DETAIL_BYTES - 1; length++) {
        to[length] = (unsigned char)from[length] < ' ' ? ' ' : from[length];
    }
    while (length && from[length] && (from[length] & 0xC0) == 0x80) {
        length--; /* not inside a multi-byte character */
    }
    to[length] = 0;
}

static void *prepare_statement(void *db, const char *sql)
{
    static const char prefix[] = "EXPLAIN QUERY PLAN ";
    size_t length = strlen(sql);
    char *text = qp_allocate(sizeof prefix + length, 1);
    void *explained = NULL;
    if (text) {
        memcpy(text, prefix, sizeof prefix - 1);
        memcpy(text + sizeof prefix - 1, sql, length);
        if (qp_sqlite.prepare(db, text, -1, &explained, NULL) != 0) {
            explained = NULL;
        }
        qp_free(text);
    }
    return explained;
}

static void read_steps(void *explained, plan *to)
{
    while (to->count < STEPS && qp_sqlite.step(explained) == QP_ROW) {
        step *one = &to->steps[to->count++];
        one->id = qp_sqlite.column_int(explained, 0);
        one->parent = qp_sqlite.column_int(explained, 1);
        copy_detail(one->detail, (const char *)qp_sqlite.column_text(explained, 3));
    }
}

/* Writes the steps that belong to `parent`, each followed by its own steps. Returns the end of the
 * text. */
static char *write_steps(const plan *from, int parent, int depth, char *to)
{
    for (int i = 0; i < from->count && depth < DEPTH; i++) {
        const step *one = &from->steps[i];
        if (one->parent != parent || one->id == parent) {
            continue;
        }
        size_t length = strlen(one->detail);
        memset(to, ' ', (size_t)(depth * INDENTATION));
        to += depth * INDENTATION;
        memcpy(to, one->detail, length);
        to[length] = '\n';
        to = write_steps(from, one->id, depth + 1, to + length + 1);
    }
    return to;
}

static void read_plan(qp_explanation *explanation, void *db, void *statement)
{
    explanation->reprepares = qp_sqlite.stmt_status(statement, QP_STMTSTATUS_REPREPARE, 0);
    const char *sql = qp_sqlite.sql(statement);
    plan *read = qp_allocate(1, sizeof *read);
    /* changes() must be restored, because even the statement itself can call changes(): in a view,
     * a column's default, or a function of the program. */
    bool writes = !qp_sqlite.stmt_readonly(statement);
    bool may_ask = read && sql && (!writes || qp_changes_value_is_known());
    int64_t changes = may_ask && writes ? qp_changes_value_read(db) : 0;
    void *explained = may_ask ? prepare_statement(db, sql) : NULL;
    if (explained) {
        read_steps(explained, read);
        qp_sqlite.finalize(explained);
        if (writes) {
            qp_changes_value_restore(db, changes);
            QP_ASSERT(qp_sqlite.changes(db) == (int)changes);
        }
        size_t line = DETAIL_BYTES + DEPTH * INDENTATION;
        explanation->tree = qp_allocate((size_t)read->count + 1, line);
        if (explanation->tree) {
            *write_steps(read, 0, 0, explanation->tree) = 0;
        }
    }
    qp_free(read);
}

void qp_explain(qp_explanation *explanation, void *db, void *statement)
{
    uint64_t from = qp_clock_ticks();
    explanation->statement = statement;
    if (explanation->columns) {
        qp_column_question_answer(explanation->columns, db);
    }
    if (explanation->wants_plan) {
        read_plan(explanation, db, statement);
    }
    explanation->ticks = qp_elapsed_ticks(from, qp_clock_ticks());
}
