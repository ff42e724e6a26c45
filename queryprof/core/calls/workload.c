#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* O_NOFOLLOW */
#endif
#include "calls/workload.h"

#include <stdio.h>
#include <string.h>

#include "counters/connections.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/exception.h"
#include "runtime/thread_local.h"
#include "sql/words.h"

enum {
    BUFFER_BYTES = 1 << 20,
    TEXTS = 1 << 15, /* that have numbers; then all get new ones */
    PATH_BYTES = 1024,
    CONNECTIONS = 256,
    NAME_BYTES = 64 /* of what follows the prefix */
};

static const int64_t FLUSH_NS = 1000000000;

bool qp_workload_on;

static struct {
    char prefix[PATH_BYTES];
    char path[PATH_BYTES + NAME_BYTES]; /* of this process's file; empty: none yet */
    char *buffer;                       /* owned */
    size_t used;
    int64_t written;
    int64_t most_bytes;
    uint64_t flushed_ticks;
    Py_hash_t *hashes; /* owned; of the texts that have numbers, by hash; 0: none */
    uint32_t *numbers; /* owned; theirs */
    uint32_t texts;    /* how many are in there */
    uint32_t last_text;
    const void *connections[CONNECTIONS]; /* that were told; compared only */
} file;

#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Appends bytes to the file; false: it cannot be written. */
static bool append(const char *bytes, size_t length)
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
    bool is_new = !file.path[0];
    if (is_new) {
        snprintf(file.path, sizeof file.path, "%s%ld-%lld", file.prefix, (long)getpid(),
                 (long long)qp_clock_unix_ns(qp_clock_ticks()));
    }
    int descriptor = open(file.path, flags | (is_new ? O_EXCL : 0), 0600);
    bool good = descriptor >= 0;
    while (good && length) {
        ssize_t done = write(descriptor, bytes, length);
        if (done < 0 && errno != EINTR) {
            good = false;
        } else if (done > 0) {
            bytes += done;
            length -= (size_t)done;
            file.written += done;
        }
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    return good;
}
#else
static bool append(const char *Py_UNUSED(bytes), size_t Py_UNUSED(length))
{
    return false;
}
#endif

void qp_workload_flush(void)
{
    if (file.used && !append(file.buffer, file.used)) {
        qp_workload_on = false; /* a full disk: what is written stays, its last record may be cut */
    }
    file.used = 0;
    file.flushed_ticks = qp_clock_ticks();
}

static void put(const void *bytes, size_t length)
{
    if (length > BUFFER_BYTES - file.used) {
        qp_workload_flush();
    }
    if (length > BUFFER_BYTES) {
        qp_workload_on = qp_workload_on && append(bytes, length);
        return;
    }
    memcpy(file.buffer + file.used, bytes, length);
    file.used += length;
}

static void put_byte(char byte)
{
    put(&byte, 1);
}

static void put_number(uint32_t number)
{
    put(&number, sizeof number);
}

static void put_bytes(char kind, const char *bytes, Py_ssize_t length)
{
    put_byte(kind);
    put_number((uint32_t)length);
    put(bytes, (size_t)length);
}

/* Not by the text's own cache of UTF-8: it would stay in the program's memory. */
static void put_text(char kind, PyObject *text)
{
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        put_bytes(kind, (const char *)PyUnicode_1BYTE_DATA(text), PyUnicode_GET_LENGTH(text));
        return;
    }
    PyObject *encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
    if (encoded) {
        put_bytes(kind, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded));
        Py_DECREF(encoded);
    } else {
        PyErr_Clear();
        put_byte('?');
    }
}

static void put_value(PyObject *value)
{
    int overflow = 0;
    if (value == Py_None) {
        put_byte('N');
    } else if (PyLong_CheckExact(value) || PyBool_Check(value)) {
        int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
        put_byte(overflow ? '?' : 'I');
        if (!overflow) {
            put(&number, sizeof number);
        }
    } else if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        put_byte('F');
        put(&number, sizeof number);
    } else if (PyUnicode_CheckExact(value)) {
        put_text('S', value);
    } else if (PyBytes_CheckExact(value)) {
        put_bytes('B', PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    } else {
        put_byte('?'); /* it is adapted by the program's own code */
    }
}

static bool is_row(PyObject *parameters)
{
    return PyTuple_CheckExact(parameters) || PyList_CheckExact(parameters);
}

/* An item of a row, owned; NULL: a finalizer, which encoding a text may run, has shortened it. */
static PyObject *item_of(PyObject *row, Py_ssize_t place)
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
        put_byte('?');
    }
}

static void put_names(PyObject *parameters)
{
    Py_ssize_t position = 0;
    PyObject *name = NULL, *value = NULL;
    uint32_t left = (uint32_t)PyDict_GET_SIZE(parameters);
    put_byte('{');
    put_number(left);
    for (; left; left--) {
        bool is_there = PyDict_Next(parameters, &position, &name, &value);
        PyObject *kept = is_there ? Py_NewRef(value) : NULL;
        put_item(is_there ? Py_NewRef(name) : NULL);
        put_item(kept);
    }
}

/* The parameters of one execution: none, a row of values, named values, or unknown. */
static void put_row(PyObject *parameters)
{
    if (!parameters || parameters == Py_None) {
        put_byte('0');
    } else if (is_row(parameters)) {
        Py_ssize_t count = PySequence_Fast_GET_SIZE(parameters);
        put_byte('(');
        put_number((uint32_t)count);
        for (Py_ssize_t i = 0; i < count; i++) {
            put_item(item_of(parameters, i));
        }
    } else if (PyDict_CheckExact(parameters)) {
        put_names(parameters);
    } else {
        put_byte('?');
    }
}

static void put_parameters(PyObject *parameters, qp_operation operation)
{
    if (operation != QP_EXECUTEMANY) {
        put_row(parameters);
    } else if (parameters && is_row(parameters)) {
        Py_ssize_t count = PySequence_Fast_GET_SIZE(parameters);
        put_byte('[');
        put_number((uint32_t)count);
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *row = item_of(parameters, i);
            put_row(row);
            Py_XDECREF(row);
        }
    } else {
        put_byte('?'); /* an iterator: it is used up */
    }
}

/* The number of a text; a new one is written. A text is told by its hash, of 64 bits. */
static uint32_t number_of_text(PyObject *text)
{
    if (!text || !PyUnicode_CheckExact(text)) {
        return 0;
    }
    Py_hash_t hash = PyObject_Hash(text);
    uint32_t place = (uint32_t)hash & (2 * TEXTS - 1);
    while (file.hashes[place] && file.hashes[place] != hash) {
        place = (place + 1) & (2 * TEXTS - 1);
    }
    if (!file.hashes[place]) {
        if (++file.texts == TEXTS) {
            memset(file.hashes, 0, 2 * TEXTS * sizeof *file.hashes);
            file.texts = 1;
            place = (uint32_t)hash & (2 * TEXTS - 1);
        }
        file.hashes[place] = hash;
        file.numbers[place] = ++file.last_text;
        put_text('T', text);
    }
    return file.numbers[place];
}

/* The record of a call's connection, where its statements are counted; or NULL. Another thread may
 * be closing it: the driver clears the connection's db first, with the GIL. */
static const qp_traced_connection *traced_of(PyObject *connection)
{
    void *db = connection ? qp_connection_db(connection) : NULL;
    const qp_traced_connection *traced = db ? qp_traced_of(db) : NULL;
    return traced && traced->sqlite && traced->sqlite->get_autocommit ? traced : NULL;
}

/* Writes a connection's file before its first execution. */
static void tell_connection(PyObject *connection, const qp_traced_connection *traced)
{
    const void **place = &file.connections[((uintptr_t)connection >> 4) % CONNECTIONS];
    if (traced && *place != connection) {
        uint64_t identity = (uint64_t)(uintptr_t)connection;
        const char *path = traced->path ? traced->path : "";
        put_byte('C');
        put(&identity, sizeof identity);
        put_bytes('S', path, (Py_ssize_t)strlen(path));
        *place = connection;
    }
}

static void put_execution(const qp_call *call, PyObject *result, uint64_t end_ticks)
{
    const qp_active *active = &call->active;
    bool has_text = call->probe->source == QP_SOURCE_TEXT;
    uint32_t text = number_of_text(has_text ? active->sql : NULL);
    bool closes = active->operation == QP_CLOSE;
    PyObject *connection = qp_connection_of(call);
    const qp_traced_connection *traced = closes ? NULL : traced_of(connection);
    enum { UNKNOWN, OUTSIDE, INSIDE } state = UNKNOWN;
    if (traced) {
        state = traced->sqlite->get_autocommit(traced->db) ? OUTSIDE : INSIDE;
        tell_connection(connection, traced);
    } else if (closes) { /* another connection may get its address */
        file.connections[((uintptr_t)connection >> 4) % CONNECTIONS] = NULL;
    }
    const struct {
        int64_t start_unix_ns;
        int64_t duration_ns;
        uint64_t connection;
        uint32_t text;
        uint16_t thread;
        uint8_t operation;
        uint8_t failed;
        uint8_t state;
        uint8_t padding[7];
    } fixed = {
        .start_unix_ns = qp_clock_unix_ns(active->start_ticks),
        .duration_ns = qp_clock_ns(qp_clock_elapsed(active->start_ticks, end_ticks)),
        .connection = (uint64_t)(uintptr_t)connection,
        .text = text,
        .thread = call->thread->number,
        .operation = (uint8_t)active->operation,
        .failed = !result,
        .state = (uint8_t)state,
    };
    put_byte('E');
    put(&fixed, sizeof fixed);
    if (has_text) {
        put_parameters(call->parameters, active->operation);
    } else {
        put_byte('0');
    }
}

void qp_workload_note(const qp_call *call, PyObject *result, uint64_t end_ticks)
{
    if (call->probe->stands_in || call->active.operation == QP_CONNECT) {
        return; /* no SQLite; a connection is told with its first execution */
    }
    if (file.written + (int64_t)file.used >= file.most_bytes) {
        put_byte('L');
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
    if (qp_clock_ns(qp_clock_elapsed(file.flushed_ticks, end_ticks)) > FLUSH_NS) {
        qp_workload_flush();
    }
}

static void begin_file(void)
{
    file.path[0] = 0;
    file.used = 0;
    file.written = 0;
    file.texts = file.last_text = 0;
    file.flushed_ticks = qp_clock_ticks();
    memset(file.hashes, 0, 2 * TEXTS * sizeof *file.hashes);
    memset(file.connections, 0, sizeof file.connections);
    put("queryprof workload 1\n", 21);
}

bool qp_workload_to(const char *prefix, int64_t most_bytes)
{
    if (qp_workload_on) {
        qp_workload_flush();
    }
    qp_workload_on = false;
    size_t bytes = strlen(prefix) + 1;
    if (bytes == 1 || bytes > sizeof file.prefix) {
        return bytes == 1;
    }
    file.buffer = file.buffer ? file.buffer : qp_allocate(1, BUFFER_BYTES);
    file.hashes = file.hashes ? file.hashes : qp_allocate(2 * (size_t)TEXTS, sizeof *file.hashes);
    file.numbers =
        file.numbers ? file.numbers : qp_allocate(2 * (size_t)TEXTS, sizeof *file.numbers);
    if (!file.buffer || !file.hashes || !file.numbers) {
        return false;
    }
    memcpy(file.prefix, prefix, bytes);
    file.most_bytes = most_bytes;
    begin_file();
    qp_workload_on = true;
    return true;
}

void qp_workload_after_fork(void)
{
    if (qp_workload_on) {
        begin_file();
    }
}
