/* Query plans: each statement is explained once for each schema on which it runs.
 *
 * A probe looks up a statement before the call (qp_plan_is_known: nearly always one comparison). If
 * the statement is new on its connection, the probe requests its plan: SQLite explains it as it
 * starts, and the plan is kept after the call. Plan requests take at most the allowed share of the
 * program's time.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "counters/connections.h"
#include "runtime/index.h"
#include "runtime/operations.h"
#include "sqlite/explain.h"
#include "sqlite/library.h"
#include "statements/schemas.h"

/* As many slots as statements, so that the statements of one connection never collide. */
enum { QP_PLAN_CACHE = 32768 };

typedef struct {
    const void *db;    /* sqlite3 *, identity only */
    uint64_t question; /* the requested plan: statement, and generation in the upper half */
} qp_cached_plan;

/* Statements whose plan needs no request in this generation. A new generation begins after plans
 * were listed, and after any schema has changed. */
extern qp_cached_plan qp_plan_cache[QP_PLAN_CACHE];
extern uint64_t qp_plan_generation; /* a multiple of 2^32 */

/* A call's request for a plan, or the call's schema change. */
typedef struct {
    qp_explanation explanation;
    qp_traced_connection *traced; /* the connection's record; NULL if nothing must be stored */
    qp_schema schema;             /* the connection's schema when the call began */
    qp_schema_change change;
} qp_plan_question;

static inline qp_cached_plan *qp_plan_cache_slot(const void *db, uint32_t statement)
{
    uint64_t first = (uint64_t)(uintptr_t)db * QP_GOLDEN_RATIO >> 48;
    return &qp_plan_cache[(first + statement) % QP_PLAN_CACHE];
}

/* Returns whether a statement on a connection (borrowed) needs no request. */
static inline bool qp_plan_is_known(PyObject *connection, uint32_t statement)
{
    const void *db = qp_connection_db(connection);
    const qp_cached_plan *known = qp_plan_cache_slot(db, statement);
    return known->db == db && known->question == (qp_plan_generation | statement);
}

/* Prepares the plan request of a call whose plan is unknown. Returns true if the statement must be
 * explained into `question->explanation`. `question->traced` is set if qp_plan_store_answer must be
 * called. */
bool qp_plan_request(qp_plan_question *question, PyObject *connection, uint32_t statement,
                     qp_operation operation);

/* Must be called after the call, even if the call failed. Stores the call's plan or schema change.
 * The call ran on `connection` with the SQL `argument` (both borrowed; `argument` may be NULL).
 * Preserves the current exception. */
void qp_plan_store_answer(qp_plan_question *question, PyObject *connection, uint32_t statement,
                          PyObject *argument);

/* Sets the share of the program's time that requests may take, and returns the old share; 0: no
 * requests; 1: no limit. */
double qp_plans_set_time_share(double share);

/* Returns a new list of the rows of the plans used since the last call; NULL with an exception. */
PyObject *qp_plans_take_used(void);

/* Allocates the tables. Returns false if out of memory. */
bool qp_plans_start(void);
void qp_plans_stop(void);

/* Drops all plans. */
void qp_plans_clear(void);

/* Returns the number of plans requested so far. */
uint64_t qp_plans_requested_count(void);
