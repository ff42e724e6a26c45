#include "samples.h"

#include <string.h>

#include "allocation.h"
#include "clock.h"
#include "statements.h"

enum { KEPT = 4096, STACK_SAMPLES = 8192, STACK_SAMPLE_SLOTS = 2 * STACK_SAMPLES };

typedef struct {
    qp_key key;
    uint64_t serial; /* 0: empty */
    int64_t started_unix_ns;
    int64_t duration_ns;
    int64_t rows;
    uint32_t stack;
    PyObject *sql;        /* owned, may be NULL */
    PyObject *parameters; /* owned, may be NULL */
} exemplar;

typedef struct {
    uint32_t statement;
    uint32_t stack;
    int64_t executions;
    int64_t ns;
} stack_sample;

static struct {
    exemplar (*kept)[QP_EXEMPLARS];
    uint16_t kept_count;
    uint16_t *kept_of;      /* by statement: 1 + place in `kept`; 0: none */
    int64_t *floor_ns;      /* by statement: what the slowest taken so far all reached */
    int64_t *notable_ticks; /* by statement */
    stack_sample *samples;
    uint32_t sample_count;
    uint32_t *sample_index;
} table;

bool qp_samples_start(void)
{
    table.kept = qp_allocate(KEPT, sizeof *table.kept);
    table.kept_of = qp_allocate(QP_STATEMENTS, sizeof *table.kept_of);
    table.floor_ns = qp_allocate(QP_STATEMENTS, sizeof *table.floor_ns);
    table.notable_ticks = qp_allocate(QP_STATEMENTS, sizeof *table.notable_ticks);
    table.samples = qp_allocate(STACK_SAMPLES, sizeof *table.samples);
    table.sample_index = qp_allocate(STACK_SAMPLE_SLOTS, sizeof *table.sample_index);
    if (!table.kept || !table.kept_of || !table.floor_ns || !table.notable_ticks ||
        !table.samples || !table.sample_index) {
        qp_samples_stop();
        return false;
    }
    return true;
}

static void forget_exemplars(void)
{
    for (uint16_t i = 0; i < table.kept_count; i++) {
        for (int j = 0; j < QP_EXEMPLARS; j++) {
            Py_CLEAR(table.kept[i][j].sql);
            Py_CLEAR(table.kept[i][j].parameters);
        }
        table.kept_of[table.kept[i][0].key.statement] = 0;
    }
    memset(table.kept, 0, table.kept_count * sizeof *table.kept);
    table.kept_count = 0;
}

static uint32_t slot_of(uint32_t statement, uint32_t stack)
{
    uint64_t hash = ((uint64_t)statement << 32 | stack) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(hash >> 40) & (STACK_SAMPLE_SLOTS - 1);
}

static void forget_stack_samples(void)
{
    for (uint32_t i = 0; i < table.sample_count; i++) { /* mostly few slots are in use */
        uint32_t slot = slot_of(table.samples[i].statement, table.samples[i].stack);
        while (table.sample_index[slot] != i + 1) {
            slot = (slot + 1) & (STACK_SAMPLE_SLOTS - 1);
        }
        table.sample_index[slot] = 0;
    }
    table.sample_count = 0;
}

void qp_samples_forget(void)
{
    forget_exemplars();
    forget_stack_samples();
}

void qp_samples_stop(void)
{
    if (table.kept && table.kept_of) {
        forget_exemplars();
    }
    qp_release(table.kept);
    qp_release(table.kept_of);
    qp_release(table.floor_ns);
    qp_release(table.notable_ticks);
    qp_release(table.samples);
    qp_release(table.sample_index);
    memset(&table, 0, sizeof table);
}

static const exemplar *fastest(const exemplar *of)
{
    const exemplar *least = &of[0];
    for (int i = 1; i < QP_EXEMPLARS; i++) {
        if (of[i].duration_ns < least->duration_ns) {
            least = &of[i];
        }
    }
    return least;
}

int64_t qp_exemplar_floor_ns(uint32_t statement)
{
    return table.floor_ns[statement];
}

int64_t qp_notable_ticks(uint32_t statement)
{
    return table.notable_ticks[statement];
}

/* With all places of a statement taken, its fastest exemplar is what the next must exceed. */
static void raise_floor(const exemplar *of)
{
    const exemplar *least = fastest(of);
    if (least->serial && least->duration_ns > table.floor_ns[least->key.statement]) {
        int64_t ns = least->duration_ns;
        table.floor_ns[least->key.statement] = ns;
        table.notable_ticks[least->key.statement] =
            qp_clock_ticks_of(ns < QP_SLOW_NS ? ns : QP_SLOW_NS);
    }
}

void qp_exemplar_keep(const qp_key *key, uint64_t serial, int64_t started_unix_ns,
                      int64_t duration_ns, int64_t rows, uint32_t stack, PyObject *sql,
                      PyObject *parameters)
{
    uint16_t *place = &table.kept_of[key->statement];
    if (!*place && table.kept_count >= KEPT) {
        Py_XDECREF(sql);
        Py_XDECREF(parameters);
        return;
    }
    if (!*place) {
        *place = ++table.kept_count;
    }
    exemplar *of = table.kept[*place - 1];
    exemplar *chosen = &of[fastest(of) - of];
    for (int i = 0; i < QP_EXEMPLARS; i++) {
        if (of[i].serial == serial) {
            of[i].duration_ns = duration_ns;
            of[i].rows = rows;
            raise_floor(of);
            Py_XDECREF(sql);
            Py_XDECREF(parameters);
            return;
        }
    }
    PyObject *old_sql = chosen->sql, *old_parameters = chosen->parameters;
    *chosen = (exemplar){*key, serial, started_unix_ns, duration_ns, rows, stack, sql, parameters};
    raise_floor(of);
    Py_XDECREF(old_sql);
    Py_XDECREF(old_parameters);
}

void qp_stack_sample_add(uint32_t statement, uint32_t stack, int64_t executions, int64_t ns)
{
    uint32_t slot = slot_of(statement, stack);
    for (; table.sample_index[slot]; slot = (slot + 1) & (STACK_SAMPLE_SLOTS - 1)) {
        stack_sample *known = &table.samples[table.sample_index[slot] - 1];
        if (known->statement == statement && known->stack == stack) {
            known->executions += executions;
            known->ns += ns;
            return;
        }
    }
    if (table.sample_count < STACK_SAMPLES) {
        table.samples[table.sample_count] = (stack_sample){statement, stack, executions, ns};
        table.sample_index[slot] = ++table.sample_count;
    }
}

static PyObject *exemplar_row(const exemplar *e)
{
    return Py_BuildValue("(IIHHILLLIOO)", e->key.statement, e->key.path, e->key.span, e->key.thread,
                         e->key.operation, e->started_unix_ns, e->duration_ns, e->rows, e->stack,
                         e->sql ? e->sql : Py_None, e->parameters ? e->parameters : Py_None);
}

PyObject *qp_exemplars_take(void)
{
    PyObject *rows = PyList_New(0);
    for (uint16_t i = 0; rows && i < table.kept_count; i++) {
        exemplar *of = table.kept[i];
        for (int j = 0; rows && j < QP_EXEMPLARS && of[j].serial; j++) {
            PyObject *row = exemplar_row(&of[j]);
            if (!row || PyList_Append(rows, row) < 0) {
                Py_CLEAR(rows);
            }
            Py_XDECREF(row);
        }
    }
    if (rows) {
        forget_exemplars();
    }
    return rows;
}

PyObject *qp_stack_samples_take(void)
{
    PyObject *rows = PyList_New(0);
    for (uint32_t i = 0; rows && i < table.sample_count; i++) {
        const stack_sample *s = &table.samples[i];
        PyObject *row = Py_BuildValue("(IILL)", s->statement, s->stack, s->executions, s->ns);
        if (!row || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    if (rows) {
        forget_stack_samples();
    }
    return rows;
}

void qp_exemplars_restart(void)
{
    memset(table.floor_ns, 0, QP_STATEMENTS * sizeof *table.floor_ns);
    memset(table.notable_ticks, 0, QP_STATEMENTS * sizeof *table.notable_ticks);
}
