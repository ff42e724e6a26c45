/* SQLite's functions in the library that a driver has loaded. They are found at run time, so the
 * core links to no SQLite and calls the program's own. */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* Constants from sqlite3.h (https://www.sqlite.org/c3ref/), which never change. */
enum {
    QP_TRACE_STMT = 0x01,
    QP_TRACE_PROFILE = 0x02,
    QP_TRACE_CLOSE = 0x08,
    QP_STMTSTATUS_FULLSCAN_STEP = 1,
    QP_STMTSTATUS_SORT = 2,
    QP_STMTSTATUS_AUTOINDEX = 3,
    QP_STMTSTATUS_VM_STEP = 4,
    QP_STMTSTATUS_REPREPARE = 5,
    QP_STMTSTATUS_RUN = 6, /* since SQLite 3.20 */
    QP_ROW = 100,
    QP_DONE = 101,
    QP_DBSTATUS_CACHE_HIT = 7,
    QP_DBSTATUS_CACHE_MISS = 8
};

typedef struct {
    int (*trace_v2)(void *db, unsigned mask, int (*callback)(unsigned, void *, void *, void *),
                    void *context);
    int (*stmt_status)(void *statement, int counter, int reset);
    int (*db_status)(void *db, int counter, int *current, int *peak, int reset);
    int (*auto_extension)(void (*entry)(void));
    int (*cancel_auto_extension)(void (*entry)(void));
    void *(*vfs_find)(const char *name);
    void *(*next_stmt)(void *db, void *statement);
    int (*stmt_busy)(void *statement);
    const char *(*sql)(void *statement);
    void *(*db_handle)(void *statement);
    void *(*db_mutex)(void *db);
    int (*mutex_try)(void *mutex);
    void (*mutex_enter)(void *mutex);
    void (*mutex_leave)(void *mutex);
    int (*prepare)(void *db, const char *sql, int bytes, void **statement, const char **tail);
    int (*step)(void *statement);
    int (*column_int)(void *statement, int column);
    const unsigned char *(*column_text)(void *statement, int column);
    int (*finalize)(void *statement);
    const char *(*db_filename)(void *db, const char *name);
    int (*get_autocommit)(void *db);
    int (*stmt_readonly)(void *statement);
    int (*changes)(void *db);
    int (*total_changes)(void *db);
    unsigned long long (*msize)(void *memory);
    int (*table_column_metadata)(void *db, const char *database, const char *table,
                                 const char *column, const char **type, const char **collation,
                                 int *not_null, int *primary_key, int *autoincrement);
    int (*file_control)(void *db, const char *database, int operation, void *argument); /* may be
                                                                                         * NULL */
    bool has_wide_changes; /* changes are counted in 64 bits */
} qp_sqlite_functions;

extern qp_sqlite_functions qp_sqlite;

/* Fills qp_sqlite from the shared library at `library` (which is loaded already; NULL: the process
 * itself). Returns NULL, or the reason for failure (static text). */
const char *qp_sqlite_find(const char *library);

/* Maximum number of drivers with a private SQLite in one process. */
enum { QP_PRIVATE_LIBRARIES = 16 };

/* Returns the SQLite that has just loaded the core as an extension, through the entry point
 * qp_sqlite_extension, on a driver's connection. That SQLite is a driver's private SQLite, or
 * sqlite3's. Returns NULL if no SQLite has loaded the core since the last call, or if the table is
 * full. */
const qp_sqlite_functions *qp_sqlite_that_loaded_core(void);

/* Returns the functions of a SQLite by its table of functions for extensions; NULL if unknown. */
const qp_sqlite_functions *qp_sqlite_of_api_table(const void *api);

/* Returns the supposed sqlite3 * of a connection (borrowed). The pointer may only be compared with
 * known pointers, because the object need not be a connection. */
static inline void *qp_connection_db(PyObject *connection)
{
    return *(void *const *)((const char *)connection + sizeof(PyObject));
}

/* Checks that a sqlite3.Connection (borrowed) has its sqlite3 * at the expected place, and sets
 * `*db`. Returns NULL, or the reason for failure (static text). */
const char *qp_sqlite_find_db(PyObject *connection, void **db);

/* Returns whether the program has set a callback on a sqlite3.Connection (trace, progress or
 * authorizer; which one is unknown). A connection refers to its module only through these
 * callbacks. */
bool qp_connection_has_callback(PyObject *connection);
