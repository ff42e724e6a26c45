#include "runtime/operations.h"

const qp_operation_facts qp_operations[QP_OPERATIONS] = {
    [QP_EXECUTE] = {"execute", QP_SOURCE_TEXT, 0},
    [QP_EXECUTEMANY] = {"executemany", QP_SOURCE_TEXT, 0},
    [QP_EXECUTESCRIPT] = {"executescript", QP_SOURCE_TEXT, 0},
    [QP_FETCHONE] = {"fetchone", QP_SOURCE_ROWS, 0},
    [QP_FETCHMANY] = {"fetchmany", QP_SOURCE_ROWS, 0},
    [QP_FETCHALL] = {"fetchall", QP_SOURCE_ROWS, 0},
    [QP_FETCHTABLE] = {"fetchtable", QP_SOURCE_ROWS, 0},
    [QP_NEXT] = {"next", QP_SOURCE_ROWS, 0},
    [QP_COMMIT] = {"commit", QP_SOURCE_FIXED, "COMMIT"},
    [QP_ROLLBACK] = {"rollback", QP_SOURCE_FIXED, "ROLLBACK"},
    [QP_CONNECT] = {"connect", QP_SOURCE_FIXED, "(connect)"},
    [QP_CLOSE] = {"close", QP_SOURCE_FIXED, "(close)"},
    [QP_BACKUP] = {"backup", QP_SOURCE_FIXED, "(backup)"},
    [QP_BLOB_OPEN] = {"blob open", QP_SOURCE_FIXED, "(blob)"},
    [QP_BLOB_READ] = {"blob read", QP_SOURCE_FIXED, "(blob)"},
    [QP_BLOB_WRITE] = {"blob write", QP_SOURCE_FIXED, "(blob)"},
    [QP_SERIALIZE] = {"serialize", QP_SOURCE_FIXED, "(serialize)"},
    [QP_DESERIALIZE] = {"deserialize", QP_SOURCE_FIXED, "(deserialize)"},
    [QP_BEGIN] = {"begin", QP_SOURCE_FIXED, "BEGIN"},
    [QP_POOL_WAIT] = {"pool wait", QP_SOURCE_FIXED, "(pool wait)"},
    [QP_EXIT] = {"exit", QP_SOURCE_EXIT, 0},
};

uint32_t qp_operation_statements[QP_OPERATIONS];
