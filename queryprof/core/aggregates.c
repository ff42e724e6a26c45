#include "aggregates.h"

#include <string.h>

#include "allocation.h"
#include "operations.h"
#include "statements.h"

enum {
    AGGREGATES = 16384,
    SLOTS = 2 * AGGREGATES,
    CHANGED = 2 * AGGREGATES,
    CHUNKS = 49152, /* of QP_BUCKETS_PER_OCTAVE counts: three octaves for each entry */
    ERRORS = 1024,
    ERROR_NAME_BYTES = 96
};

typedef struct {
    int32_t counts[QP_BUCKETS_PER_OCTAVE];
} chunk;

typedef struct {
    qp_key key;
    int64_t count;
    char name[ERROR_NAME_BYTES];
} error_count;

static struct {
    qp_aggregate *entries; /* the first QP_OPERATIONS take in what finds no room */
    uint32_t count;
    uint32_t *index; /* entry number + 1 by hash; 0: empty */
    uint32_t generation;
    qp_aggregate *last; /* the entry found last: loops ask for one */
    uint32_t *changed;  /* entries in the order they first changed since they were taken */
    uint32_t changed_count;
    uint32_t taken; /* of `changed`, from the front */
    chunk *chunks;
    uint32_t chunk_count;
    error_count *errors;
    uint32_t error_count;
    uint64_t folded;
} table;

static uint64_t hash_key(const qp_key *key)
{
    uint64_t words[2];
    _Static_assert(sizeof words == sizeof *key, "a key has no padding");
    memcpy(words, key, sizeof words);
    uint64_t hash = (words[0] ^ (words[1] * 0xC2B2AE3D27D4EB4Fu)) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
}

/* An entry for each operation takes in the calls that find no room of their own. */
static void reserve_others(void)
{
    for (int operation = 0; operation < QP_OPERATIONS; operation++) {
        table.entries[operation].key =
            (qp_key){.statement = QP_STATEMENT_OTHER, .operation = (uint32_t)operation};
    }
    table.count = QP_OPERATIONS;
}

bool qp_aggregates_start(void)
{
    table.entries = qp_allocate(AGGREGATES, sizeof *table.entries);
    table.index = qp_allocate(SLOTS, sizeof *table.index);
    table.changed = qp_allocate(CHANGED, sizeof *table.changed);
    table.chunks = qp_allocate(CHUNKS, sizeof *table.chunks);
    table.errors = qp_allocate(ERRORS, sizeof *table.errors);
    if (!table.entries || !table.index || !table.changed || !table.chunks || !table.errors) {
        qp_aggregates_stop();
        return false;
    }
    reserve_others();
    return true;
}

void qp_aggregates_stop(void)
{
    uint32_t generation = table.generation + 1;
    qp_release(table.entries);
    qp_release(table.index);
    qp_release(table.changed);
    qp_release(table.chunks);
    qp_release(table.errors);
    memset(&table, 0, sizeof table);
    table.generation = generation; /* pointers of an earlier recording stay void */
}

uint32_t qp_aggregates_generation(void)
{
    return table.generation;
}

qp_aggregate *qp_aggregate_of(const qp_key *key)
{
    if (table.last && qp_same_key(&table.last->key, key)) {
        return table.last;
    }
    uint32_t slot = (uint32_t)hash_key(key) & (SLOTS - 1);
    for (; table.index[slot]; slot = (slot + 1) & (SLOTS - 1)) {
        qp_aggregate *known = &table.entries[table.index[slot] - 1];
        if (qp_same_key(&known->key, key)) {
            table.last = known;
            return known;
        }
    }
    if (table.count >= AGGREGATES) {
        table.folded++;
        return &table.entries[key->operation];
    }
    qp_aggregate *added = &table.entries[table.count];
    added->key = *key;
    table.index[slot] = ++table.count;
    return added;
}

qp_aggregate *qp_aggregate_serving(qp_aggregate *began, qp_operation operation)
{
    uint32_t *number = &began->serving[operation - QP_FETCHONE];
    if (!*number) {
        qp_key key = began->key;
        key.operation = operation;
        *number = (uint32_t)(qp_aggregate_of(&key) - table.entries);
    }
    return &table.entries[*number];
}

/* The count of a bucket, or NULL when no chunk is left. */
static int32_t *bucket_of(qp_aggregate *sums, int64_t ns)
{
    int bucket = qp_histogram_bucket(ns);
    uint16_t *number = &sums->octaves[bucket / QP_BUCKETS_PER_OCTAVE];
    if (!*number) {
        if (table.chunk_count >= CHUNKS) {
            return NULL;
        }
        *number = (uint16_t)++table.chunk_count;
    }
    return &table.chunks[*number - 1].counts[bucket % QP_BUCKETS_PER_OCTAVE];
}

void qp_aggregate_move(qp_aggregate *sums, int64_t from_ns, int64_t to_ns)
{
    qp_aggregate_change(sums);
    if (to_ns > sums->execution_max_ns) {
        sums->execution_max_ns = to_ns;
    }
    sums->execution_sum_sq_ns2 += (double)to_ns * (double)to_ns;
    if (from_ns >= 0) {
        sums->execution_sum_sq_ns2 -= (double)from_ns * (double)from_ns;
        int32_t *left = bucket_of(sums, from_ns);
        if (left) {
            (*left)--;
        }
    }
    int32_t *reached = bucket_of(sums, to_ns);
    if (reached) {
        (*reached)++;
    }
}

void qp_aggregate_count(qp_aggregate *sums, const qp_counters *counters)
{
    qp_aggregate_change(sums);
    qp_counters_add(&sums->counters, counters);
}

/* Writes the qualified name of an exception's type; no code of the program runs. */
static void name_exception(PyObject *exception_type, char *name)
{
    PyTypeObject *type = (PyTypeObject *)exception_type;
    PyObject *module = NULL;
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_dict) {
        module = PyDict_GetItemString(type->tp_dict, "__module__"); /* borrowed */
    }
    const char *prefix = module && PyUnicode_CheckExact(module) ? PyUnicode_AsUTF8(module) : NULL;
    bool plain = !prefix || !strcmp(prefix, "builtins");
    PyOS_snprintf(name, ERROR_NAME_BYTES, "%s%s%s", plain ? "" : prefix, plain ? "" : ".",
                  type->tp_name);
}

void qp_aggregate_error(const qp_key *key, PyObject *exception_type)
{
    char name[ERROR_NAME_BYTES];
    name_exception(exception_type, name);
    for (uint32_t i = 0; i < table.error_count; i++) {
        if (qp_same_key(&table.errors[i].key, key) &&
            !strncmp(table.errors[i].name, name, ERROR_NAME_BYTES - 1)) {
            table.errors[i].count++;
            return;
        }
    }
    /* The last place takes in all further kinds. */
    bool last = table.error_count + 1 >= ERRORS;
    error_count *added = &table.errors[last ? ERRORS - 1 : table.error_count++];
    if (last && added->count) {
        added->count++;
        return;
    }
    added->key = last ? (qp_key){.statement = QP_STATEMENT_OTHER} : *key;
    added->count = 1;
    PyOS_snprintf(added->name, ERROR_NAME_BYTES, "%s", last ? "(other)" : name);
    table.error_count += last;
}

/* A new tuple of (bucket, count, bucket, count, ...); empties the buckets. */
static PyObject *take_histogram(qp_aggregate *sums)
{
    PyObject *pairs[2 * QP_BUCKETS];
    Py_ssize_t used = 0;
    for (int octave = 0; octave < QP_OCTAVES; octave++) {
        chunk *counts = sums->octaves[octave] ? &table.chunks[sums->octaves[octave] - 1] : NULL;
        for (int i = 0; counts && i < QP_BUCKETS_PER_OCTAVE; i++) {
            if (counts->counts[i]) {
                pairs[used] = PyLong_FromLong(octave * QP_BUCKETS_PER_OCTAVE + i);
                pairs[used + 1] = PyLong_FromLong(counts->counts[i]);
                used += 2;
                counts->counts[i] = 0;
            }
        }
    }
    PyObject *tuple = PyTuple_New(used);
    for (Py_ssize_t i = 0; i < used; i++) {
        if (!pairs[i]) {
            Py_CLEAR(tuple);
        }
        if (tuple) {
            PyTuple_SET_ITEM(tuple, i, pairs[i]);
        } else {
            Py_XDECREF(pairs[i]);
        }
    }
    return tuple;
}

static PyObject *take_one(qp_aggregate *sums)
{
    PyObject *histogram = take_histogram(sums);
    if (!histogram) {
        return NULL;
    }
    const qp_counters *c = &sums->counters;
    PyObject *row = Py_BuildValue(
        "(IIHHILLLLLLLLdLLLLLLLLN)", sums->key.statement, sums->key.path, sums->key.span,
        sums->key.thread, sums->key.operation, sums->count, sums->errors, sums->rows,
        sums->total_ns, sums->self_ns, sums->min_ns, sums->max_ns, sums->execution_max_ns,
        sums->execution_sum_sq_ns2, c->vm_steps, c->full_scan_steps, c->sorts, c->automatic_indexes,
        c->reprepares, c->page_fetches, c->counted, c->page_fetch_samples, histogram);
    if (row) {
        sums->changed = false;
        sums->count = sums->errors = sums->rows = 0;
        sums->total_ns = sums->self_ns = sums->min_ns = sums->max_ns = 0;
        sums->execution_max_ns = 0;
        sums->execution_sum_sq_ns2 = 0;
        memset(&sums->counters, 0, sizeof sums->counters);
    }
    return row;
}

void qp_aggregate_first_change(qp_aggregate *sums)
{
    if (table.changed_count == CHANGED) {
        qp_aggregates_rewind(); /* those that wait to be taken are fewer than there are entries */
    }
    sums->changed = true;
    table.changed[table.changed_count++] = (uint32_t)(sums - table.entries);
}

PyObject *qp_aggregates_take(Py_ssize_t limit)
{
    PyObject *rows = PyList_New(0);
    while (rows && table.taken < table.changed_count && PyList_GET_SIZE(rows) < limit) {
        PyObject *row = take_one(&table.entries[table.changed[table.taken]]);
        table.taken += row != NULL;
        if (!row || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    return rows;
}

PyObject *qp_errors_take(void)
{
    PyObject *rows = PyList_New(0);
    for (uint32_t i = 0; rows && i < table.error_count; i++) {
        const error_count *e = &table.errors[i];
        PyObject *row =
            Py_BuildValue("(IIHHIsL)", e->key.statement, e->key.path, e->key.span, e->key.thread,
                          e->key.operation, e->name, (long long)e->count);
        if (!row || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    if (rows) {
        memset(table.errors, 0, table.error_count * sizeof *table.errors);
        table.error_count = 0;
    }
    return rows;
}

bool qp_aggregates_changed(void)
{
    return table.changed_count > table.taken || table.error_count > 0;
}

bool qp_aggregates_nearly_full(void)
{
    return table.count > AGGREGATES - AGGREGATES / 4 || table.chunk_count > CHUNKS - CHUNKS / 4;
}

void qp_aggregates_rewind(void)
{
    table.changed_count -= table.taken;
    memmove(table.changed, table.changed + table.taken,
            table.changed_count * sizeof *table.changed);
    table.taken = 0;
}

void qp_aggregates_forget(void)
{
    /* Only what is in use: touching the rest would make the whole tables resident. */
    memset(table.entries, 0, table.count * sizeof *table.entries);
    memset(table.index, 0, SLOTS * sizeof *table.index);
    memset(table.chunks, 0, table.chunk_count * sizeof *table.chunks);
    memset(table.errors, 0, table.error_count * sizeof *table.errors);
    table.error_count = 0;
    table.chunk_count = 0;
    table.changed_count = 0;
    table.taken = 0;
    table.last = NULL;
    table.generation++;
    reserve_others();
}

uint64_t qp_aggregates_folded(void)
{
    return table.folded;
}
