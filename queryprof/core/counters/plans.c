#include "counters/plans.h"

#include <string.h>

#include "counters/counters.h"
#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/exception.h"
#include "runtime/index.h"
#include "statements/statements.h"

enum {
    KNOWN_SLOTS = 131072,             /* number of slots for pairs of statement and schema */
    HEAD_START_NS = 100 * 1000 * 1000 /* time for plan requests at the program's start, in
                                       * addition to the share */
};

static const uint64_t ONE_GENERATION = (uint64_t)1 << 32;

typedef struct {
    uint64_t schema; /* 0 if free */
    uint32_t statement;
    uint32_t plan; /* 1 + the row of the plan; 0: SQLite returned no plan */
} known_plan;

static struct {
    known_plan *known;
    uint32_t known_count;
    bool is_met[QP_PLANS]; /* whether the row was used since the last qp_plans_take_used */
    double share;
    int64_t asked_ticks;
    uint64_t started_ticks;
    uint64_t explained;
} table = {.share = 1.0};

qp_cached_plan qp_plan_cache[QP_PLAN_CACHE];
uint64_t qp_plan_generation = (uint64_t)1 << 32;

bool qp_plans_start(void)
{
    table.known = qp_allocate(KNOWN_SLOTS, sizeof *table.known);
    memset(table.is_met, 0, sizeof table.is_met);
    table.known_count = 0;
    table.asked_ticks = 0;
    table.started_ticks = qp_clock_ticks();
    table.explained = 0;
    qp_plan_generation += ONE_GENERATION;
    return table.known != NULL;
}

void qp_plans_stop(void)
{
    qp_free(table.known);
    table.known = NULL;
}

double qp_plans_set_time_share(double share)
{
    double before = table.share;
    table.share = share;
    return before;
}

uint64_t qp_plans_requested_count(void)
{
    return table.explained;
}

/* Returns the entry of a statement with a schema, or the free entry for the pair. */
static known_plan *find_plan(uint64_t schema, uint32_t statement)
{
    uint64_t slot = qp_hash_mix(schema, statement) % KNOWN_SLOTS;
    while (table.known[slot].schema &&
           (table.known[slot].schema != schema || table.known[slot].statement != statement)) {
        slot = (slot + 1) % KNOWN_SLOTS;
    }
    return &table.known[slot];
}

static void remember_plan(uint64_t schema, uint32_t statement, uint32_t plan)
{
    if (table.known_count >= KNOWN_SLOTS / 2) { /* all plans are requested again when they are
                                                 * used */
        memset(table.known, 0, KNOWN_SLOTS * sizeof *table.known);
        table.known_count = 0;
    }
    known_plan *entry = find_plan(schema, statement);
    table.known_count += !entry->schema;
    *entry = (known_plan){schema, statement, plan};
}

/* Returns whether there is room for a plan, and time to request it. */
static bool is_affordable(void)
{
    if (qp_row_count(QP_PLAN_ROWS) == QP_PLANS) {
        return false;
    }
    int64_t elapsed = qp_elapsed_ticks(table.started_ticks, qp_clock_ticks());
    double allowed_ns = table.share * (double)qp_ticks_to_ns(elapsed) + HEAD_START_NS;
    return table.share >= 1 || (double)qp_ticks_to_ns(table.asked_ticks) < allowed_ns;
}

static const char *database_path(const qp_traced_connection *traced)
{
    return traced->path ? traced->path : "";
}

/* Returns the number of the schema that the connection sees now. */
static uint64_t current_schema(qp_traced_connection *traced)
{
    if (traced->reprepared) {
        traced->reprepared = false;
        qp_schema_apply_change(&traced->schema, QP_SCHEMA_CHANGED, 0);
    }
    return qp_schema_number(&traced->schema, database_path(traced));
}

static void stop_requests(const void *db, uint32_t statement)
{
    *qp_plan_cache_slot(db, statement) = (qp_cached_plan){db, qp_plan_generation | statement};
}

QP_COLD bool qp_plan_request(qp_plan_question *question, PyObject *connection, uint32_t statement,
                             qp_operation operation)
{
    const void *db = qp_connection_db(connection);
    const qp_statement_row *row = qp_statement_get_row(statement);
    question->change = operation == QP_EXECUTESCRIPT ? row->script_change : row->schema_change;
    if (question->change == QP_SCHEMA_KEPT && (!table.share || !row->can_be_explained)) {
        stop_requests(db, statement);
        return false;
    }
    qp_traced_connection *traced = qp_counted_connection(connection);
    if (!traced) {
        stop_requests(db, statement); /* until the next generation of the cache */
        return false;
    }
    bool ends =
        question->change == QP_SCHEMA_COMMITTED || question->change == QP_SCHEMA_ROLLED_BACK;
    if (ends && !traced->schema.is_open) {
        stop_requests(db, statement); /* until the next generation, which a schema change
                                       * begins */
        return false;
    }
    uint64_t schema = current_schema(traced); /* also computed if the call is about to change the
                                               * schema */
    if (question->change != QP_SCHEMA_KEPT) {
        question->traced = traced;
        question->schema = traced->schema;
        return false;
    }
    const known_plan *known = find_plan(schema, statement);
    if (known->schema) {
        if (known->plan) {
            table.is_met[known->plan - 1] = true;
        }
        stop_requests(db, statement);
        return false;
    }
    if (!is_affordable()) {
        qp_head->unasked_plans++;
        stop_requests(db, statement);
        return false;
    }
    table.explained++;
    question->traced = traced;
    return true;
}

/* Returns 1 + the row of a plan, and adds the plan if it is new; 0 if the table is full. */
static uint32_t find_or_add_plan(uint32_t statement, const char *database, const char *text)
{
    PyObject *path = PyUnicode_DecodeFSDefault(database[0] ? database : ":memory:");
    const qp_plan_row plan = {.statement = statement,
                              .database = path ? qp_text_from_str(path) : QP_TEXT_FULL,
                              .tree = qp_text_find_or_add(text, strlen(text))};
    Py_XDECREF(path);
    qp_plan_row *rows = qp_first_row(QP_PLAN_ROWS);
    for (uint32_t i = 0; i < qp_row_count(QP_PLAN_ROWS); i++) {
        if (rows[i].statement == statement && rows[i].tree == plan.tree &&
            rows[i].database == plan.database) {
            return i + 1;
        }
    }
    bool has_texts = plan.database != QP_TEXT_FULL && plan.tree != QP_TEXT_FULL;
    uint32_t added = has_texts ? qp_rows_add(QP_PLAN_ROWS, 1) : UINT32_MAX;
    if (added == UINT32_MAX) {
        return 0;
    }
    rows[added] = plan;
    return added + 1;
}

/* Returns whether a plan reads a table. */
static bool reads_a_table(const char *tree)
{
    if (strstr(tree, "SEARCH ")) {
        return true;
    }
    for (const char *at = tree; (at = strstr(at, "SCAN ")); at += 5) {
        if (strncmp(at + 5, "CONSTANT ROW", 12) != 0 && !Py_ISDIGIT(at[5])) {
            return true;
        }
    }
    return false;
}

/* Returns whether a plan reads a table of a database that should still be empty. A database in
 * memory may be shared with connections that have filled it. */
static bool may_be_shared(const qp_traced_connection *traced, const char *tree)
{
    return !traced->schema.file && !traced->schema.own.state && reads_a_table(tree);
}

/* Stores a plan. The text is empty if SQLite returned no steps. */
static void keep_plan(qp_traced_connection *traced, uint32_t statement, const char *tree)
{
    if (may_be_shared(traced, tree)) {
        qp_schema_apply_change(&traced->schema, QP_SCHEMA_UNKNOWN, 0);
    }
    uint32_t place = 0;
    if (tree[0]) {
        place = find_or_add_plan(statement, database_path(traced), tree);
        if (place) {
            table.is_met[place - 1] = true;
        }
    }
    remember_plan(current_schema(traced), statement, place);
    stop_requests(traced->db, statement);
}

QP_COLD void qp_plan_store_answer(qp_plan_question *question, PyObject *connection,
                                  uint32_t statement, PyObject *argument)
{
    qp_traced_connection *traced = question->traced;
    /* Another thread may be closing the connection. The driver clears the connection's db first. */
    bool is_open = traced->db && qp_connection_db(connection) == traced->db;
    if (question->change != QP_SCHEMA_KEPT) {
        bool is_text = argument && PyUnicode_Check(argument);
        uint64_t event = is_text ? (uint64_t)PyUnicode_Type.tp_hash(argument) : statement;
        /* For a closed connection, record only the changes of the file's schema. */
        qp_schema_apply_change(is_open ? &traced->schema : &question->schema, question->change,
                               event);
        if (is_open && qp_sqlite.get_autocommit(traced->db)) {
            traced->schema.is_open = false;
        }
        if (question->change != QP_SCHEMA_COMMITTED) {
            qp_plan_generation += ONE_GENERATION;
        }
        return;
    }
    const qp_explanation *explanation = &question->explanation;
    table.asked_ticks += explanation->ticks;
    if (!explanation->statement) {
        return; /* the call failed before the statement started */
    }
    qp_exception exception = qp_exception_take();
    if (is_open && qp_plan_was_used(traced, explanation)) {
        keep_plan(traced, statement, explanation->tree ? explanation->tree : "");
    } /* otherwise the plan is requested again the next time */
    qp_exception_put_back(&exception); /* also drops a decoding error */
}

void qp_plans_clear(void)
{
    qp_rows_clear(QP_PLAN_ROWS);
    memset(table.known, 0, KNOWN_SLOTS * sizeof *table.known);
    memset(table.is_met, 0, sizeof table.is_met);
    table.known_count = 0;
    qp_plan_generation += ONE_GENERATION;
}

PyObject *qp_plans_take_used(void)
{
    PyObject *rows = PyList_New(0);
    for (uint32_t i = 0; rows && i < qp_row_count(QP_PLAN_ROWS); i++) {
        PyObject *row = table.is_met[i] ? PyLong_FromUnsignedLong(i) : NULL;
        if (table.is_met[i] && (!row || PyList_Append(rows, row) < 0)) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    if (rows) {
        memset(table.is_met, 0, sizeof table.is_met);
        qp_plan_generation += ONE_GENERATION; /* plans in use are requested again */
    }
    return rows;
}
