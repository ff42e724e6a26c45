#include "sums/parameters.h"

#include <string.h>

#include "memory/region.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "sums/given_values.h"
#include "sums/sampled_rows.h"

enum {
    SLOW_NS = 1000000,     /* hashing a row of values takes 0.1 to 1 us */
    REMEMBERED = 8192,     /* newer samples replace older ones at the same place */
    MAX_CHARACTERS = 8192, /* of the text and of all values; hashing more takes over 8 us */
    ENOUGH = 4             /* with more samples, slow executions would count too often */
};

/* A sample: its parameters, and the number of writes before it. */
typedef struct {
    uint64_t hash; /* of its row, too; 0 if none */
    uint32_t writes;
} remembered;

static struct {
    qp_sampled_rows rows;
    bool *has_no_values; /* by row: no facts about values can be found in the text */
    remembered *samples; /* by hash */
    uint64_t secret;
} table = {.rows = {.table = QP_PARAMETER_ROWS, .row_bytes = sizeof(qp_parameter_row)}};

uint32_t qp_writes;
int64_t qp_parameters_slow_ticks;

bool qp_parameters_start(void)
{
    qp_parameters_slow_ticks = qp_ns_to_ticks(SLOW_NS);
    table.secret = qp_hash_mix(qp_clock_ticks(), (uint64_t)(uintptr_t)&table);
    table.has_no_values = qp_allocate(QP_PARAMETERS, sizeof *table.has_no_values);
    table.samples = qp_allocate(REMEMBERED, sizeof *table.samples);
    return table.has_no_values && table.samples &&
           qp_sampled_rows_start(&table.rows, QP_PARAMETERS);
}

void qp_parameters_stop(void)
{
    qp_sampled_rows_stop(&table.rows);
    qp_free(table.has_no_values);
    qp_free(table.samples);
    table.has_no_values = NULL;
    table.samples = NULL;
}

void qp_parameters_clear(void)
{
    uint32_t count = qp_row_count(QP_PARAMETER_ROWS);
    if (count) {
        memset(table.has_no_values, 0, count * sizeof *table.has_no_values);
        memset(table.samples, 0, REMEMBERED * sizeof *table.samples);
    }
    qp_sampled_rows_clear(&table.rows);
}

/* Mixes a value into a hash. `left` is the number of characters that may still be hashed. Returns
 * false if hashing the value would run the program's code or take long. */
static bool mix_value(uint64_t *hash, PyObject *value, Py_ssize_t *left)
{
    bool is_text = PyUnicode_CheckExact(value), is_bytes = PyBytes_CheckExact(value);
    bool is_plain = value == Py_None || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
                    PyBool_Check(value) || is_text || is_bytes;
    *left -= is_text ? PyUnicode_GET_LENGTH(value) : is_bytes ? PyBytes_GET_SIZE(value) : 1;
    is_plain = is_plain && *left >= 0;
    if (is_plain) {
        uint64_t type = (uint64_t)(uintptr_t)Py_TYPE(value);
        *hash = qp_hash_mix(*hash, (uint64_t)PyObject_Hash(value) ^ type);
    }
    return is_plain;
}

/* Returns the hash of an execution's parameters and its work (a request or a thread); 0 if
 * unknown. */
static uint64_t parameters_hash(PyObject *sql, PyObject *parameters, uint64_t work)
{
    uint64_t hash = qp_hash_mix(table.secret, work);
    Py_ssize_t left = MAX_CHARACTERS;
    bool known = sql && mix_value(&hash, sql, &left);
    if (parameters && PyTuple_CheckExact(parameters)) {
        for (Py_ssize_t i = 0; known && i < PyTuple_GET_SIZE(parameters); i++) {
            known = mix_value(&hash, PyTuple_GET_ITEM(parameters, i), &left);
        }
    } else if (parameters && PyList_CheckExact(parameters)) {
        for (Py_ssize_t i = 0; known && i < PyList_GET_SIZE(parameters); i++) {
            known = mix_value(&hash, PyList_GET_ITEM(parameters, i), &left);
        }
    } else if (parameters && PyDict_CheckExact(parameters)) {
        PyObject *name, *value;
        for (Py_ssize_t at = 0; known && PyDict_Next(parameters, &at, &name, &value);) {
            known = mix_value(&hash, name, &left) && mix_value(&hash, value, &left);
        }
    } else if (parameters && parameters != Py_None) {
        known = false;
    }
    return known ? hash | 1 : 0;
}

/* Adds facts about the values. Values of a failed execution are ignored. */
static void add_given_values(qp_parameter_row *row, bool *has_no_values,
                             const qp_sampled_execution *sampled)
{
    if (sampled->has_failed || *has_no_values) {
        return;
    }
    qp_given_values given =
        qp_given_values_of(sampled->sql, sampled->parameters, sampled->is_sqlite);
    *has_no_values = !given.may_be_there;
    if (given.offset >= 0 && given.offset <= INT64_MAX - row->skipped) {
        row->offsets++;
        row->skipped += given.offset;
    }
    row->open_patterns += given.has_open_pattern;
}

void qp_parameters_sample(const qp_key *key, const qp_sampled_execution *sampled)
{
    uint64_t hash = parameters_hash(sampled->sql, sampled->parameters, sampled->work);
    uint32_t number = hash ? qp_sampled_row_number(&table.rows, key) : UINT32_MAX;
    if (number == UINT32_MAX) {
        return;
    }
    qp_parameter_row *row = (qp_parameter_row *)qp_first_row(QP_PARAMETER_ROWS) + number;
    if (!sampled->is_chosen || row->samples - row->slow < ENOUGH) {
        add_given_values(row, &table.has_no_values[number], sampled);
    } else if (sampled->is_slow) {
        row->slow++; /* the values of slow executions are not those of all */
    } else {
        return;
    }
    row->samples++;
    uint64_t own = qp_hash_mix(hash, number) | 1;
    remembered *known = &table.samples[own / 2 % REMEMBERED];
    row->repeats += known->hash == own && known->writes == qp_writes;
    *known = (remembered){own, qp_writes};
}
