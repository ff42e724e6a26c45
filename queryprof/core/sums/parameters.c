#include "sums/parameters.h"

#include <string.h>

#include "memory/region.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/index.h"

enum {
    SLOTS = 2 * QP_PARAMETERS,
    REMEMBERED = 8,
    LONGEST = 4096 /* hashing a longer text would be felt */
};

typedef struct {
    uint64_t hash[REMEMBERED]; /* 0: none */
    uint32_t writes[REMEMBERED];
    uint32_t next;
} memory;

static struct {
    qp_index index; /* of the rows, by statement and path */
    memory *runs;   /* by row */
    uint64_t secret;
} table;

uint32_t qp_writes;

bool qp_parameters_start(void)
{
    table.secret = qp_hash_mix(qp_clock_ticks(), (uint64_t)(uintptr_t)&table);
    table.runs = qp_allocate(QP_PARAMETERS, sizeof *table.runs);
    return table.runs && qp_index_start(&table.index, SLOTS);
}

void qp_parameters_stop(void)
{
    qp_index_stop(&table.index);
    qp_release(table.runs);
    table.runs = NULL;
}

void qp_parameters_clear(void)
{
    uint32_t count = qp_row_count(QP_PARAMETER_ROWS);
    if (count) { /* else a fork pays for nothing */
        memset(table.index.slots, 0, SLOTS * sizeof *table.index.slots);
        memset(table.runs, 0, count * sizeof *table.runs);
    }
    qp_rows_clear(QP_PARAMETER_ROWS);
}

/* The number of a statement's and path's row; UINT32_MAX: there is no room. */
static uint32_t row_of(const qp_key *key)
{
    qp_parameter_row *rows = qp_rows(QP_PARAMETER_ROWS);
    uint32_t slot = qp_index_begin(&table.index, qp_hash_mix(key->statement, key->path));
    for (; table.index.slots[slot]; slot = qp_index_next(&table.index, slot)) {
        uint32_t number = table.index.slots[slot] - 1;
        if (rows[number].statement == key->statement && rows[number].path == key->path) {
            return number;
        }
    }
    uint32_t added = qp_rows_add(QP_PARAMETER_ROWS, 1);
    if (added != UINT32_MAX) {
        table.index.slots[slot] = added + 1;
        rows[added].statement = key->statement;
        rows[added].path = key->path;
    }
    return added;
}

/* Mixes a value into a hash; false: hashing it would run the program's code, or take long. */
static bool mix_value(uint64_t *hash, PyObject *value)
{
    bool is_plain = value == Py_None || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
                    PyBool_Check(value) ||
                    (PyUnicode_CheckExact(value) && PyUnicode_GET_LENGTH(value) <= LONGEST) ||
                    (PyBytes_CheckExact(value) && PyBytes_GET_SIZE(value) <= LONGEST);
    if (is_plain) {
        uint64_t type = (uint64_t)(uintptr_t)Py_TYPE(value);
        *hash = qp_hash_mix(*hash, (uint64_t)PyObject_Hash(value) ^ type);
    }
    return is_plain;
}

/* The hash of an execution's parameters; 0: unknown. */
static uint64_t hash_of(PyObject *sql, PyObject *parameters)
{
    uint64_t hash = table.secret;
    bool known = sql && mix_value(&hash, sql);
    if (parameters && PyTuple_CheckExact(parameters)) {
        for (Py_ssize_t i = 0; known && i < PyTuple_GET_SIZE(parameters); i++) {
            known = mix_value(&hash, PyTuple_GET_ITEM(parameters, i));
        }
    } else if (parameters && PyList_CheckExact(parameters)) {
        for (Py_ssize_t i = 0; known && i < PyList_GET_SIZE(parameters); i++) {
            known = mix_value(&hash, PyList_GET_ITEM(parameters, i));
        }
    } else if (parameters && PyDict_CheckExact(parameters)) {
        PyObject *name, *value;
        for (Py_ssize_t at = 0; known && PyDict_Next(parameters, &at, &name, &value);) {
            known = mix_value(&hash, name) && mix_value(&hash, value);
        }
    } else if (parameters && parameters != Py_None) {
        known = false;
    }
    return known ? hash | 1 : 0;
}

void qp_parameters_sample(const qp_key *key, PyObject *sql, PyObject *parameters)
{
    uint64_t hash = hash_of(sql, parameters);
    uint32_t number = hash ? row_of(key) : UINT32_MAX;
    if (number == UINT32_MAX) {
        return;
    }
    qp_parameter_row *row = (qp_parameter_row *)qp_rows(QP_PARAMETER_ROWS) + number;
    memory *runs = &table.runs[number];
    row->samples++;
    for (int i = 0; i < REMEMBERED; i++) {
        if (runs->hash[i] == hash) {
            row->repeats += runs->writes[i] == qp_writes;
            runs->writes[i] = qp_writes;
            return;
        }
    }
    runs->hash[runs->next] = hash;
    runs->writes[runs->next] = qp_writes;
    runs->next = (runs->next + 1) % REMEMBERED;
}
