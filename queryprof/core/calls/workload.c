#include "calls/workload.h"

#include <string.h>

#include "calls/workload_file.h"
#include "counters/connections.h"
#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/exception.h"
#include "runtime/index.h"
#include "runtime/thread_local.h"
#include "sql/words.h"
#include "stacks/stacks.h"

enum {
    TEXTS = 1 << 15,  /* maximum number of texts with numbers; at the maximum, all texts get new
                       * numbers */
    CONNECTIONS = 256 /* a power of two */
};

static struct {
    Py_hash_t *hashes; /* owned; hash table of the texts that have numbers: the hash of each text;
                        * 0: free */
    uint32_t *numbers; /* owned; the numbers of these texts */
    uint32_t texts;    /* the number of texts in the hash table */
    uint32_t last_text;
    struct {
        uint64_t identity;        /* address of the connection, or its serial number if the
                                   * address is unknown */
        uint64_t serial;          /* distinguishes connections with the same address */
    } connections[CONNECTIONS];   /* connections that are in the file */
    uint8_t paths[QP_STACKS / 8]; /* a bit for each call path that is in the file */
} written;

/* Do not use the str's own UTF-8 cache, because the cache would stay in the program's memory. */
static void put_text(char kind, PyObject *text)
{
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        qp_workload_put_bytes(kind, (const char *)PyUnicode_1BYTE_DATA(text),
                              PyUnicode_GET_LENGTH(text));
        return;
    }
    PyObject *encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
    if (encoded) {
        qp_workload_put_bytes(kind, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded));
        Py_DECREF(encoded);
    } else {
        qp_exception_clear();
        qp_workload_put_byte('?');
    }
}

static void put_value(PyObject *value)
{
    int overflow = 0;
    if (value == Py_None) {
        qp_workload_put_byte('N');
    } else if (PyLong_CheckExact(value) || PyBool_Check(value)) {
        int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
        qp_workload_put_byte(overflow ? '?' : 'I');
        if (!overflow) {
            qp_workload_put(&number, sizeof number);
        }
    } else if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        qp_workload_put_byte('F');
        qp_workload_put(&number, sizeof number);
    } else if (PyUnicode_CheckExact(value)) {
        put_text('S', value);
    } else if (PyBytes_CheckExact(value)) {
        qp_workload_put_bytes('B', PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    } else {
        qp_workload_put_byte('?'); /* the program's code adapts such a value */
    }
}

static bool is_row(PyObject *parameters)
{
    return PyTuple_CheckExact(parameters) || PyList_CheckExact(parameters);
}

/* Returns an item of a row (owned by the caller). NULL if a finalizer has shortened the row:
 * encoding a text may run finalizers. */
static PyObject *row_item(PyObject *row, Py_ssize_t place)
{
    return place < PySequence_Fast_GET_SIZE(row) ? Py_NewRef(PySequence_Fast_GET_ITEM(row, place))
                                                 : NULL;
}

static void put_item(PyObject *value)
{
    if (value) {
        put_value(value);
        Py_DECREF(value);
    } else {
        qp_workload_put_byte('?');
    }
}

static void put_names(PyObject *parameters)
{
    Py_ssize_t position = 0;
    PyObject *name = NULL, *value = NULL;
    uint32_t left = (uint32_t)PyDict_GET_SIZE(parameters);
    qp_workload_put_byte('{');
    qp_workload_put_number(left);
    for (; left; left--) {
        bool is_there = PyDict_Next(parameters, &position, &name, &value);
        PyObject *kept = is_there ? Py_NewRef(value) : NULL;
        put_item(is_there ? Py_NewRef(name) : NULL);
        put_item(kept);
    }
}

/* Writes the parameters of one execution: none, a row of values, named values, or unknown. */
static void put_row(PyObject *parameters)
{
    if (!parameters || parameters == Py_None) {
        qp_workload_put_byte('0');
    } else if (is_row(parameters)) {
        Py_ssize_t count = PySequence_Fast_GET_SIZE(parameters);
        qp_workload_put_byte('(');
        qp_workload_put_number((uint32_t)count);
        for (Py_ssize_t i = 0; i < count; i++) {
            put_item(row_item(parameters, i));
        }
    } else if (PyDict_CheckExact(parameters)) {
        put_names(parameters);
    } else {
        qp_workload_put_byte('?');
    }
}

static void put_parameters(PyObject *parameters, qp_operation operation)
{
    if (operation != QP_EXECUTEMANY) {
        put_row(parameters);
    } else if (parameters && is_row(parameters)) {
        Py_ssize_t count = PySequence_Fast_GET_SIZE(parameters);
        qp_workload_put_byte('[');
        qp_workload_put_number((uint32_t)count);
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *row = row_item(parameters, i);
            put_row(row);
            Py_XDECREF(row);
        }
    } else {
        qp_workload_put_byte('?'); /* an iterator, which the call has used up */
    }
}

/* Returns the number of a text, and writes the text if it is new. Texts are identified by their
 * 64-bit hash. */
static uint32_t text_number(PyObject *text)
{
    if (!text || !PyUnicode_CheckExact(text)) {
        return 0;
    }
    Py_hash_t hash = PyObject_Hash(text);
    uint32_t place = (uint32_t)hash & (2 * TEXTS - 1);
    while (written.hashes[place] && written.hashes[place] != hash) {
        place = (place + 1) & (2 * TEXTS - 1);
    }
    if (!written.hashes[place]) {
        if (++written.texts == TEXTS) {
            memset(written.hashes, 0, 2 * TEXTS * sizeof *written.hashes);
            written.texts = 1;
            place = (uint32_t)hash & (2 * TEXTS - 1);
        }
        written.hashes[place] = hash;
        written.numbers[place] = ++written.last_text;
        put_text('T', text);
    }
    return written.numbers[place];
}

/* Returns the record of a connection whose statements are counted, or NULL. Another thread may be
 * closing the connection: the driver clears the connection's db first, with the GIL held. */
static const qp_traced_connection *traced_connection(PyObject *connection)
{
    void *db = connection ? qp_connection_db(connection) : NULL;
    const qp_traced_connection *traced = db ? qp_traced_connection_of(db) : NULL;
    return traced && traced->sqlite ? traced : NULL;
}

/* Writes the connection's identity and its database's path to the workload, before the connection's
 * first execution. */
static void write_connection(uint64_t identity, uint64_t serial)
{
    uint64_t place = identity * QP_GOLDEN_RATIO >> 32 & (CONNECTIONS - 1);
    if (written.connections[place].identity == identity &&
        written.connections[place].serial == serial) {
        return;
    }
    bool is_known;
    char *path = qp_traced_path(serial, &is_known);
    if (is_known) {
        qp_workload_put_byte('C');
        qp_workload_put(&identity, sizeof identity);
        qp_workload_put_bytes('S', path ? path : "", path ? (Py_ssize_t)strlen(path) : 0);
        written.connections[place].identity = identity;
        written.connections[place].serial = serial;
    }
    qp_free(path);
}

/* Returns the identity of a call's connection, and sets the state of its transaction after the
 * call. */
static uint64_t call_connection(const qp_call *call, qp_transaction *transaction)
{
    PyObject *connection = qp_connection_of(call);
    uint64_t identity = (uint64_t)(uintptr_t)connection, serial = 0;
    const qp_traced_connection *traced = traced_connection(connection);
    *transaction = QP_TRANSACTION_UNKNOWN;
    if (traced) {
        serial = traced->serial;
        *transaction = qp_traced_transaction(traced);
    } else if (!connection && call->execution) {
        identity = serial = call->execution->meter.connection;
        *transaction = call->execution->meter.transaction;
    }
    if (serial) {
        write_connection(identity, serial);
    }
    return identity;
}

/* Writes the frames of a call path, innermost first, before the first execution with this path. */
static void write_path(uint32_t path)
{
    uint8_t bit = (uint8_t)(1 << (path % 8));
    if (path < 2 || path >= QP_STACKS || written.paths[path / 8] & bit) {
        return; /* the path is unknown, or already in the file */
    }
    written.paths[path / 8] |= bit;
    uint32_t frames = 0, length = 0;
    for (uint32_t at = path; at; at = qp_stack_outer(at)) {
        frames++;
    }
    qp_workload_put_byte('P');
    qp_workload_put_number(path);
    qp_workload_put_number(frames);
    const qp_line_row *lines = qp_first_row(QP_LINE_ROWS);
    for (uint32_t at = path; at; at = qp_stack_outer(at)) {
        const qp_line_row *line = &lines[qp_stack_innermost_line(at)];
        const char *bytes = qp_text_bytes(line->file, &length);
        qp_workload_put_bytes('S', bytes, length);
        bytes = qp_text_bytes(line->function, &length);
        qp_workload_put_bytes('S', bytes, length);
        qp_workload_put_number(line->line);
    }
}

static void put_execution(const qp_call *call, PyObject *result, uint64_t end_ticks)
{
    const qp_active_call *active = &call->active;
    bool has_text = call->probe->source == QP_SOURCE_TEXT;
    uint32_t text = text_number(has_text ? active->sql : NULL);
    qp_transaction transaction;
    uint64_t connection = call_connection(call, &transaction);
    const struct {
        int64_t start_unix_ns;
        int64_t duration_ns;
        uint64_t connection;
        uint32_t text;
        uint16_t thread;
        uint8_t operation;
        uint8_t failed;
        uint8_t state;
        uint8_t padding[3];
        uint32_t path;
        uint64_t serial;
    } fixed = {
        .start_unix_ns = qp_ticks_to_unix_ns(active->start_ticks),
        .duration_ns = qp_ticks_to_ns(qp_elapsed_ticks(active->start_ticks, end_ticks)),
        .connection = connection,
        .text = text,
        .thread = call->thread->number,
        .operation = (uint8_t)active->operation,
        .failed = !result,
        .state = (uint8_t)transaction,
        .path = call->execution ? call->execution->meter.key.path : 0,
        .serial = call->execution ? call->execution->serial : 0,
    };
    write_path(fixed.path);
    qp_workload_put_byte('E');
    qp_workload_put(&fixed, sizeof fixed);
    if (has_text) {
        put_parameters(call->parameters, active->operation);
    } else {
        qp_workload_put_byte('0');
    }
}

void qp_workload_add_call(const qp_call *call, PyObject *result, uint64_t end_ticks)
{
    if (call->probe->stands_in || call->active.operation == QP_CONNECT) {
        return; /* the call is not SQLite's, or it opens a connection, which is written with its
                 * first execution */
    }
    if (qp_workload_is_full()) {
        qp_workload_put_byte('L');
        qp_workload_flush();
        qp_workload_on = false;
        return;
    }
    qp_exception exception = qp_exception_take();
    bool was_muted = qp_here.muted;
    qp_here.muted = true; /* a garbage collection here may run the program's code */
    put_execution(call, result, end_ticks);
    qp_here.muted = was_muted;
    qp_exception_put_back(&exception);
    if (qp_workload_flush_is_due(end_ticks)) {
        qp_workload_flush();
    }
}

void qp_workload_add_fetched_rows(uint64_t serial, int64_t rows)
{
    if (!qp_workload_is_full()) {
        qp_workload_put_byte('R');
        qp_workload_put(&serial, sizeof serial);
        qp_workload_put(&rows, sizeof rows);
    }
}

static void begin_file(void)
{
    qp_workload_begin_file();
    written.texts = written.last_text = 0;
    memset(written.hashes, 0, 2 * TEXTS * sizeof *written.hashes);
    memset(written.connections, 0, sizeof written.connections);
    memset(written.paths, 0, sizeof written.paths);
    qp_workload_put("queryprof workload 2\n", 21);
}

bool qp_workload_set_prefix(const char *prefix, int64_t most_bytes)
{
    if (qp_workload_on) {
        qp_workload_flush();
    }
    qp_workload_on = qp_counting.notes_connections = false;
    if (!prefix[0]) {
        return true;
    }
    written.hashes =
        written.hashes ? written.hashes : qp_allocate(2 * (size_t)TEXTS, sizeof *written.hashes);
    written.numbers =
        written.numbers ? written.numbers : qp_allocate(2 * (size_t)TEXTS, sizeof *written.numbers);
    if (!written.hashes || !written.numbers || !qp_workload_begin(prefix, most_bytes)) {
        return false;
    }
    begin_file();
    qp_workload_on = qp_counting.notes_connections = true;
    return true;
}

void qp_workload_after_fork(void)
{
    if (qp_workload_on) {
        begin_file();
    }
}
