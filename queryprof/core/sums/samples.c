#include "sums/samples.h"

#include <string.h>

#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/compiler.h"
#include "runtime/index.h"

uint32_t qp_stack_mask = QP_STACK_SAMPLING - 1;

enum {
    VALUE_BYTES = QP_TEXT_BYTES / 5 *
        2, /* share of the table of texts for SQL and parameters of exemplars */
    SAMPLE_SLOTS = 2 * QP_STACK_SAMPLES
};

static struct {
    uint16_t (*kept)[QP_EXEMPLARS_KEPT]; /* for each statement: 1 + the row of each exemplar; 0:
                                          * none */
    int64_t *floor_ns;      /* for each statement: the duration of its fastest exemplar; 0 while a
                             * slot is free */
    int64_t *notable_ticks; /* for each statement: see qp_exemplar_sample_ticks */
    qp_index samples;
    uint32_t value_bytes;
} table;

static qp_exemplar_row *exemplar_rows(void)
{
    return qp_first_row(QP_EXEMPLAR_ROWS);
}

bool qp_samples_allocate(void)
{
    table.kept = qp_allocate(QP_STATEMENTS, sizeof *table.kept);
    table.floor_ns = qp_allocate(QP_STATEMENTS, sizeof *table.floor_ns);
    table.notable_ticks = qp_allocate(QP_STATEMENTS, sizeof *table.notable_ticks);
    return table.kept && table.floor_ns && table.notable_ticks &&
           qp_index_start(&table.samples, SAMPLE_SLOTS);
}

void qp_samples_stop(void)
{
    qp_free(table.kept);
    qp_free(table.floor_ns);
    qp_free(table.notable_ticks);
    qp_index_stop(&table.samples);
    memset(&table, 0, sizeof table);
}

void qp_samples_clear(void)
{
    for (uint32_t i = 0; i < qp_row_count(QP_EXEMPLAR_ROWS); i++) {
        uint32_t statement = exemplar_rows()[i].key.statement;
        memset(table.kept[statement], 0, sizeof *table.kept);
        table.floor_ns[statement] = table.notable_ticks[statement] = 0;
    }
    if (qp_row_count(QP_STACK_SAMPLE_ROWS)) {
        memset(table.samples.slots, 0, SAMPLE_SLOTS * sizeof *table.samples.slots);
    }
    qp_rows_clear(QP_EXEMPLAR_ROWS);
    qp_rows_clear(QP_STACK_SAMPLE_ROWS);
}

int64_t qp_exemplar_floor_ns(uint32_t statement)
{
    return table.floor_ns[statement];
}

int64_t qp_exemplar_sample_ticks(uint32_t statement)
{
    return table.notable_ticks[statement];
}

/* Sets the duration that the next exemplar must exceed: the duration of the fastest exemplar, or 0
 * while a slot is free. */
static void raise_floor(uint32_t statement)
{
    const uint16_t *kept = table.kept[statement];
    int64_t least_ns = INT64_MAX;
    for (int i = 0; i < QP_EXEMPLARS_KEPT; i++) {
        int64_t ns = kept[i] ? exemplar_rows()[kept[i] - 1].duration_ns : 0;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    table.floor_ns[statement] = least_ns;
    table.notable_ticks[statement] = qp_ns_to_ticks(least_ns < QP_SLOW_NS ? least_ns : QP_SLOW_NS);
}

/* Returns the row of the exemplar with this serial number, or a new row, or the row of the fastest
 * exemplar; NULL if there is no room. */
static qp_exemplar_row *exemplar_row_for(const qp_exemplar_row *of)
{
    uint16_t *kept = table.kept[of->key.statement];
    qp_exemplar_row *fastest = NULL;
    for (int i = 0; i < QP_EXEMPLARS_KEPT; i++) {
        if (!kept[i]) {
            uint32_t added = qp_rows_add(QP_EXEMPLAR_ROWS, 1);
            if (added == UINT32_MAX) {
                break;
            }
            kept[i] = (uint16_t)(added + 1);
            exemplar_rows()[added].sql = exemplar_rows()[added].parameters = QP_TEXT_FULL;
            return &exemplar_rows()[added];
        }
        qp_exemplar_row *e = &exemplar_rows()[kept[i] - 1];
        if (e->serial == of->serial) {
            return e;
        }
        fastest = !fastest || e->duration_ns < fastest->duration_ns ? e : fastest;
    }
    return fastest;
}

/* Writes a value over the text `old` if the value fits there. Otherwise adds the value, if there is
 * room for values. Returns the text, or QP_TEXT_FULL. */
static qp_text value_text(qp_text old, PyObject *value)
{
    uint32_t bytes = 0;
    qp_text text =
        value ? qp_text_replace(old, value, VALUE_BYTES - table.value_bytes, &bytes) : QP_TEXT_FULL;
    table.value_bytes += bytes;
    return text;
}

void qp_exemplar_keep(const qp_exemplar_row *of, PyObject *sql, PyObject *parameters)
{
    qp_exemplar_row *e = exemplar_row_for(of);
    if (!e || (e->serial && e->serial != of->serial && e->duration_ns >= of->duration_ns)) {
        return;
    }
    qp_change_begins(e);
    if (e->serial == of->serial) {
        e->duration_ns = of->duration_ns;
        e->rows = of->rows;
    } else {
        qp_exemplar_row now = *of;
        now.sequence = e->sequence;
        now.sql = value_text(e->sql, sql);
        now.parameters = value_text(e->parameters, parameters);
        *e = now;
    }
    qp_change_ends(e);
    raise_floor(of->key.statement);
}

void qp_stack_sample_add(uint32_t statement, uint32_t stack, int64_t executions, int64_t ns)
{
    qp_stack_sample_row *rows = qp_first_row(QP_STACK_SAMPLE_ROWS);
    uint32_t slot = qp_index_begin(&table.samples, qp_hash_mix(qp_hash_mix(0, statement), stack));
    for (; table.samples.slots[slot]; slot = qp_index_next(&table.samples, slot)) {
        qp_stack_sample_row *known = &rows[table.samples.slots[slot] - 1];
        if (known->statement == statement && known->stack == stack) {
            known->executions += executions;
            known->ns += ns;
            return;
        }
    }
    uint32_t added = qp_rows_add(QP_STACK_SAMPLE_ROWS, 1);
    if (added != UINT32_MAX) {
        rows[added] = (qp_stack_sample_row){statement, stack, executions, ns};
        table.samples.slots[slot] = added + 1;
    }
}
