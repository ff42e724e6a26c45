/* Query plans: each statement is explained once for each schema that it meets.
 *
 * A probe looks a statement up before the call (qp_plan_known: a comparison, nearly always). One
 * that is new on its connection is asked about: SQLite explains it as it starts, and the answer is
 * kept after the call. So much of the program's time is spent on it at most as was allowed.
 */
#ifndef QP_COUNTERS_PLANS_H
#define QP_COUNTERS_PLANS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "counters/connections.h"
#include "runtime/operations.h"
#include "sqlite/explain.h"
#include "sqlite/library.h"
#include "statements/schemas.h"

enum { QP_PLAN_CACHE = 1024 };

typedef struct {
    const void *db;    /* sqlite3 *, identity only */
    uint64_t question; /* the statement and, in the upper half, the generation */
} qp_plan_cached;

/* What needs no asking, until the generation changes: when plans were asked for, and with any
 * schema. */
extern qp_plan_cached qp_plan_cache[QP_PLAN_CACHE];
extern uint64_t qp_plan_generation; /* a multiple of 2^32 */

/* What a call wants to know, or to tell, of a plan. */
typedef struct {
    qp_explanation explanation;
    qp_traced_connection *traced; /* of the connection; NULL: the call has no question */
    qp_schema schema;             /* the connection's, when the call began */
    qp_schema_change change;
} qp_plan_question;

static inline qp_plan_cached *qp_plan_place(const void *db, uint32_t statement)
{
    return &qp_plan_cache[((uintptr_t)db >> 6 ^ statement * 31) % QP_PLAN_CACHE];
}

/* Whether there is nothing to ask about a statement on a connection (borrowed). */
static inline bool qp_plan_known(PyObject *connection, uint32_t statement)
{
    const void *db = qp_connection_db(connection);
    const qp_plan_cached *known = qp_plan_place(db, statement);
    return known->db == db && known->question == (qp_plan_generation | statement);
}

/* Fills in the question of a call that is not known; where to explain is `explanation`, if `asks`
 * is returned. `question->traced` says whether it must be answered. */
bool qp_plan_request(qp_plan_question *question, PyObject *connection, uint32_t statement,
                     qp_operation operation);

/* Keeps what the call has brought: after it, whether it failed or not. `connection` is the one that
 * was asked, `argument` its SQL (both borrowed, the latter may be NULL). Keeps the exception that
 * is set. */
void qp_plan_answer(qp_plan_question *question, PyObject *connection, uint32_t statement,
                    PyObject *argument);

/* The share of the program's time that may be spent on asking; 0: never ask; 1: no bounds. */
void qp_plans_allow(double share);

/* A new list of the rows of the plans that were met since this was last asked; NULL with an
 * exception. */
PyObject *qp_plans_met(void);

/* Allocates the tables; false without memory. */
bool qp_plans_start(void);
void qp_plans_stop(void);

/* Drops all plans. */
void qp_plans_clear(void);

/* Questions asked so far. */
uint64_t qp_plans_requested(void);

#endif
