/* The operations: the kinds of driver calls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The source of a call's statement. */
typedef enum {
    QP_SOURCE_TEXT,  /* the first argument of the call is SQL; the result or the cursor returns
                      * the rows */
    QP_SOURCE_ROWS,  /* the call fetches rows of the statement that the cursor executed */
    QP_SOURCE_FIXED, /* fixed by the operation: COMMIT, (connect), ... */
    QP_SOURCE_EXIT   /* `with connection`: commits, or rolls back after an exception */
} qp_statement_source;

typedef enum {
    QP_EXECUTE,
    QP_EXECUTEMANY,
    QP_EXECUTESCRIPT,
    QP_FETCHONE,
    QP_FETCHMANY,
    QP_FETCHALL,
    QP_FETCHTABLE, /* fetches all rows as another library's object, so their number is unknown */
    QP_NEXT,
    QP_COMMIT,
    QP_ROLLBACK,
    QP_CONNECT,
    QP_CLOSE,
    QP_BACKUP,
    QP_BLOB_OPEN,
    QP_BLOB_READ,
    QP_BLOB_WRITE,
    QP_SERIALIZE,
    QP_DESERIALIZE,
    QP_BEGIN,
    QP_POOL_WAIT, /* a wait, because all connections of the pool are in use */
    QP_EXIT,
    QP_OPERATIONS /* number of recorded operations; QP_EXIT is recorded as commit or rollback */
} qp_operation;

typedef struct {
    const char *name; /* name in records and reports */
    qp_statement_source source;
    const char *statement; /* statement of QP_SOURCE_FIXED */
} qp_operation_facts;

/* The kind of result of a function that executes a statement. */
typedef enum {
    QP_RETURNS_CURSOR, /* a cursor for the rows; unspecified if the method belongs to the cursor
                        * itself */
    QP_RETURNS_ROWS,   /* all rows, in a list */
    QP_RETURNS_ROW,    /* a row, a value of a row, or None; a fetch of all rows returns a list if
                        * there are several rows */
    QP_RETURNS_STATUS, /* the server's command tag, as "UPDATE 3" */
    QP_RETURNS_PORTAL, /* the first rows, in a list, or no rows; the receiver returns the other
                        * rows */
    QP_RETURNS_VALUES, /* the call returns its argument; the receiver returns the rows */
    QP_RETURNS         /* number of kinds */
} qp_result_kind;

extern const qp_operation_facts qp_operations[QP_OPERATIONS];

/* Returns whether an operation has the source QP_SOURCE_ROWS. */
static inline bool qp_operation_serves_rows(qp_operation operation)
{
    return operation >= QP_FETCHONE && operation <= QP_NEXT;
}

/* Returns whether an operation fetches all rows. */
static inline bool qp_operation_serves_all(qp_operation operation)
{
    return operation == QP_FETCHALL || operation == QP_FETCHTABLE;
}

/* The statements of operations without SQL text, in the current recording. */
extern uint32_t qp_operation_statements[QP_OPERATIONS];
