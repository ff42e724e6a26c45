#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall */
#endif
#include "sqlite/library.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/compiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

qp_sqlite_functions qp_sqlite;

/* The first fields of sqlite3_vfs, as sqlite3.h declares it. */
typedef struct vfs {
    int version;
    int file_bytes;
    int path_bytes;
    struct vfs *next;
} vfs;

static void *find_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

static void *open_library(const char *path)
{
    return dlopen(path, path ? RTLD_LAZY | RTLD_NOLOAD : RTLD_LAZY);
}

/* Returns whether 8 bytes can be read. rt_sigprocmask(2) copies the set of signals before it
 * refuses an unknown `how` (kernel/signal.c of Linux). Each Python program makes this system call,
 * so no sandbox ends the process because of it, as some sandboxes do for process_vm_readv(2) and
 * pipe2(2). */
static bool is_readable(const void *address)
{
    enum { UNKNOWN_WAY = -1, SIGNAL_BYTES = 8 };
    return syscall(SYS_rt_sigprocmask, UNKNOWN_WAY, address, NULL, SIGNAL_BYTES) != 0 &&
           errno != EFAULT;
}

/* Reads a pointer that may be invalid. Returns false if it is unreadable, or if the system call
 * reports that everything is readable, as an emulator may do. */
static bool read_pointer(const void *from, void **to)
{
    const void *nowhere = (const void *)sizeof(void *);
    if (is_readable(nowhere) || !is_readable(from)) {
        return false;
    }
    memcpy(to, from, sizeof *to);
    return true;
}

/* Stores a symbol's address in a function pointer (through memcpy: ISO C has no such cast). */
static bool find_function(void *library, const char *name, void *function)
{
    void *symbol = find_symbol(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

const char *qp_sqlite_find(const char *path)
{
    void *library = open_library(path);
    if (!library) {
        return "the driver's SQLite library cannot be found";
    }
    qp_sqlite_functions found;
    bool all =
        find_function(library, "sqlite3_trace_v2", &found.trace_v2) &&
        find_function(library, "sqlite3_stmt_status", &found.stmt_status) &&
        find_function(library, "sqlite3_db_status", &found.db_status) &&
        find_function(library, "sqlite3_auto_extension", &found.auto_extension) &&
        find_function(library, "sqlite3_cancel_auto_extension", &found.cancel_auto_extension) &&
        find_function(library, "sqlite3_vfs_find", &found.vfs_find) &&
        find_function(library, "sqlite3_next_stmt", &found.next_stmt) &&
        find_function(library, "sqlite3_stmt_busy", &found.stmt_busy) &&
        find_function(library, "sqlite3_sql", &found.sql) &&
        find_function(library, "sqlite3_db_handle", &found.db_handle) &&
        find_function(library, "sqlite3_db_mutex", &found.db_mutex) &&
        find_function(library, "sqlite3_mutex_try", &found.mutex_try) &&
        find_function(library, "sqlite3_mutex_enter", &found.mutex_enter) &&
        find_function(library, "sqlite3_mutex_leave", &found.mutex_leave) &&
        find_function(library, "sqlite3_prepare_v2", &found.prepare) &&
        find_function(library, "sqlite3_step", &found.step) &&
        find_function(library, "sqlite3_column_int", &found.column_int) &&
        find_function(library, "sqlite3_column_text", &found.column_text) &&
        find_function(library, "sqlite3_finalize", &found.finalize) &&
        find_function(library, "sqlite3_db_filename", &found.db_filename) &&
        find_function(library, "sqlite3_get_autocommit", &found.get_autocommit) &&
        find_function(library, "sqlite3_stmt_readonly", &found.stmt_readonly) &&
        find_function(library, "sqlite3_changes", &found.changes) &&
        find_function(library, "sqlite3_total_changes", &found.total_changes) &&
        find_function(library, "sqlite3_msize", &found.msize) &&
        find_function(library, "sqlite3_table_column_metadata", &found.table_column_metadata);
    if (!find_function(library, "sqlite3_file_control", &found.file_control)) {
        found.file_control = NULL;
    }
    found.has_wide_changes = find_symbol(library, "sqlite3_changes64") != NULL;
    if (!all && !find_symbol(library, "sqlite3_mutex_try")) {
        return "SQLite is compiled without mutexes (SQLITE_THREADSAFE=0)";
    }
    if (!all) {
        return "the driver's SQLite library does not show its functions";
    }
    qp_sqlite = found;
    return NULL;
}

static struct {
    qp_sqlite_functions
        known[QP_PRIVATE_LIBRARIES]; /* drivers that have a private SQLite library */
    int count;
    const qp_sqlite_functions *last;
} private;

const qp_sqlite_functions *qp_sqlite_that_loaded_core(void)
{
    const qp_sqlite_functions *last = private.last;
    private.last = NULL;
    return last;
}

/* The positions of the functions that we call in SQLite's table of functions for extensions (struct
 * sqlite3_api_routines of sqlite3ext.h, which only ever grows at its end). */
enum {
    API_COLUMN_INT = 28,
    API_COLUMN_TEXT = 36,
    API_DB_HANDLE = 49,
    API_FINALIZE = 57,
    API_GET_AUTOCOMMIT = 60,
    API_STEP = 94,
    API_PREPARE_V2 = 116,
    API_FILE_CONTROL = 127,
    API_MUTEX_ENTER = 131,
    API_MUTEX_LEAVE = 133,
    API_MUTEX_TRY = 134,
    API_VFS_FIND = 141,
    API_NEXT_STMT = 152,
    API_SQL = 153,
    API_DB_MUTEX = 164,
    API_DB_STATUS = 165,
    API_STMT_STATUS = 170,
    API_DB_FILENAME = 180,
    API_STMT_BUSY = 184,
    API_AUTO_EXTENSION = 192,
    API_CANCEL_AUTO_EXTENSION = 195,
    API_TRACE_V2 = 214
};

/* SQLite calls this when it loads the core as an extension, on a connection that nothing else uses.
 * Stores SQLite's functions. */
QP_EXPORTED int qp_sqlite_extension(void *Py_UNUSED(db), char **Py_UNUSED(error), void *const *api);

int qp_sqlite_extension(void *Py_UNUSED(db), char **Py_UNUSED(error), void *const *api)
{
    qp_sqlite_functions found = {0};
    const struct {
        int place;
        void *function;
    } wanted[] = {
        {API_COLUMN_INT, &found.column_int},
        {API_COLUMN_TEXT, &found.column_text},
        {API_DB_HANDLE, &found.db_handle},
        {API_FINALIZE, &found.finalize},
        {API_GET_AUTOCOMMIT, &found.get_autocommit},
        {API_STEP, &found.step},
        {API_PREPARE_V2, &found.prepare},
        {API_FILE_CONTROL, &found.file_control},
        {API_MUTEX_ENTER, &found.mutex_enter},
        {API_MUTEX_LEAVE, &found.mutex_leave},
        {API_MUTEX_TRY, &found.mutex_try},
        {API_VFS_FIND, &found.vfs_find},
        {API_NEXT_STMT, &found.next_stmt},
        {API_SQL, &found.sql},
        {API_DB_MUTEX, &found.db_mutex},
        {API_DB_STATUS, &found.db_status},
        {API_STMT_STATUS, &found.stmt_status},
        {API_DB_FILENAME, &found.db_filename},
        {API_STMT_BUSY, &found.stmt_busy},
        {API_AUTO_EXTENSION, &found.auto_extension},
        {API_CANCEL_AUTO_EXTENSION, &found.cancel_auto_extension},
        {API_TRACE_V2, &found.trace_v2},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        memcpy(wanted[i].function, &api[wanted[i].place], sizeof api[0]);
    }
    private.last = qp_sqlite_of_api_table(api);
    if (!private.last && private.count < QP_PRIVATE_LIBRARIES) {
        private.known[private.count] = found;
        private.last = &private.known[private.count++];
    }
    return 0;
}

const qp_sqlite_functions *qp_sqlite_of_api_table(const void *api)
{
    for (int i = 0; api && i < private.count; i++) {
        const qp_sqlite_functions *known = &private.known[i];
        if (memcmp(&known->trace_v2, (void *const *)api + API_TRACE_V2, sizeof(void *)) == 0) {
            return known;
        }
    }
    return NULL;
}

const char *qp_sqlite_find_db(PyObject *connection, void **db)
{
    void *candidate = NULL, *first_field = NULL;
    bool has_candidate = read_pointer((const char *)connection + sizeof(PyObject), &candidate) &&
                         candidate && read_pointer(candidate, &first_field);
    /* A sqlite3 begins with a pointer to its VFS, which must be a registered VFS. */
    for (vfs *known = qp_sqlite.vfs_find(NULL); has_candidate && known; known = known->next) {
        if (known == first_field) {
            *db = candidate;
            return NULL;
        }
    }
    return "the connection's layout is not known";
}

static int note_if_module(PyObject *visited, void *found)
{
    if (PyModule_Check(visited)) {
        *(bool *)found = true;
    }
    return 0;
}

bool qp_connection_has_callback(PyObject *connection)
{
    bool found = false;
    traverseproc traverse = Py_TYPE(connection)->tp_traverse;
    if (traverse) {
        traverse(connection, note_if_module, &found);
    }
    return found;
}
