/* A probed call in progress, and facts about the called function. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "counters/plans.h"
#include "counters/statement_events.h"
#include "memory/execution_row.h"
#include "runtime/operations.h"
#include "sql/words.h"
#include "threads/threads.h"

/* The known facts about an attached function. */
typedef struct {
    qp_operation operation;
    qp_statement_source source;   /* where the SQL text comes from */
    Py_ssize_t rowcount_offset;   /* offset of a cursor's count of changed rows; 0: the cursor has
                                   * no such count */
    Py_ssize_t connection_offset; /* offset of a cursor's reference to its connection; 0: the
                                   * receiver is neither a cursor nor a connection */
    bool has_own_sqlite;          /* the driver has a private SQLite, which reports the end of
                                   * each statement */
    PyTypeObject *cursor_type;    /* owned by the attachment: the type of cursors to which the
                                   * offsets apply; or NULL */
    bool drops;        /* the function drops the statements that it prepares before the call ends;
                        * or its SQLite reports each statement's end, after which no statement is
                        * kept */
    qp_system system;  /* database system of the driver */
    bool stands_in;    /* the function is called through an attribute, as in drivers written in
                        * Python */
    bool has_receiver; /* the function's first argument is the cursor or connection */
    bool is_awaited;   /* the function returns a coroutine */
    qp_result_kind returns;
    PyObject *function; /* owned by the wrapper: the driver's function; NULL if it was not
                         * replaced */
    PyObject *text_of;  /* owned by the wrapper: name of the receiver's attribute with the
                         * statement; NULL: the statement is the first argument */
    PyObject *only_if;  /* owned by the wrapper, for a pool: a tuple with the name of the argument
                         * that lets a call wait (or ""), and the names of the attributes that
                         * lead from the receiver to its free connections. Only calls without a
                         * free connection are measured. NULL: every call is measured */
} qp_probe;

static inline qp_dialect qp_dialect_of(const qp_probe *probe)
{
    return !probe->stands_in                       ? QP_SQLITE
           : qp_system_quotes_names(probe->system) ? QP_STANDARD_SQL
                                                   : QP_ANY_SQL;
}

/* A probed call in progress, filled in only as far as its operation needs. Owned and reused by its
 * thread; never on the C stack (see qp_active_call). A free call keeps its thread. In a free call,
 * `active.has_more`, `active.statement`, `active.work`, `active.below`, `outer` and `connection`
 * are zero. */
typedef struct qp_call {
    /* Set for every call. */
    qp_active_call active;
    struct qp_call *outer; /* the probed call that made this call */
    struct qp_call *next_free;
    qp_thread *thread;
    const qp_probe *probe;
    uint32_t recording;      /* the number of the recording in which the call began */
    PyObject *self;          /* borrowed, like all of the program's objects in a call, except
                              * `connection`; may be NULL */
    int64_t nested_ticks;    /* ticks spent in probed calls inside this call */
    qp_execution *execution; /* the execution that the call begins or fetches from; NULL if the
                              * probe did not see the cursor's execute */
    /* Set for a call that begins an execution. */
    PyObject *parameters;
    int64_t script_rows;  /* rows changed by a script, including its triggers */
    bool tells_ends;      /* the connection reports the ends of statements during the call */
    PyObject *connection; /* owned, because the program's code inside the call may release it;
                           * NULL: script_rows, tells_ends and plan are not set */
    qp_plan_question plan;
    qp_execution spare; /* used as the execution if calls in progress take all slots of the table */
} qp_call;

/* Returns the connection of a call (borrowed); NULL if unknown. */
static inline PyObject *qp_connection_of(const qp_call *call)
{
    const qp_probe *probe = call->probe;
    if (!probe->connection_offset) {
        return NULL;
    }
    bool is_cursor = Py_IS_TYPE(call->self, probe->cursor_type) ||
                     PyType_IsSubtype(Py_TYPE(call->self), probe->cursor_type);
    const char *place = (const char *)call->self + probe->connection_offset;
    return is_cursor ? *(PyObject *const *)place : call->self;
}
