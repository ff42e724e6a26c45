#include "context/span_sites.h"

#include "memory/region.h"
#include "memory/span_rows.h"

void qp_span_sites_add_executions(qp_span_sites *sites, uint32_t statement, uint32_t path,
                                  uint32_t executions)
{
    for (uint32_t i = 0; i < sites->count; i++) {
        if (sites->site[i].statement == statement && sites->site[i].path == path) {
            sites->site[i].executions += executions;
            return;
        }
    }
    if (sites->count < QP_SPAN_SITES) {
        sites->site[sites->count++] = (qp_span_site){statement, path, executions};
    }
}

void qp_span_sites_change_statement(qp_span_sites *sites, uint32_t from, uint32_t to, uint32_t path)
{
    for (uint32_t i = 0; i < sites->count; i++) {
        qp_span_site *at = &sites->site[i];
        if (at->statement == from && at->path == path && at->executions) {
            at->executions--;
            qp_span_sites_add_executions(sites, to, path, 1);
            return;
        }
    }
}

/* Adds a repeat: a statement that a span executed again and again from one call path. */
static void add_repeat(uint16_t name, const qp_span_site *s)
{
    qp_repeat_row *rows = qp_first_row(QP_REPEAT_ROWS);
    uint32_t at = 0;
    while (
        at < qp_row_count(QP_REPEAT_ROWS) &&
        (rows[at].span != name || rows[at].statement != s->statement || rows[at].path != s->path)) {
        at++;
    }
    if (at == qp_row_count(QP_REPEAT_ROWS)) {
        at = qp_rows_add(QP_REPEAT_ROWS, 1);
        if (at == UINT32_MAX) {
            return;
        }
        rows[at] = (qp_repeat_row){.span = name, .statement = s->statement, .path = s->path};
    }
    rows[at].spans++;
    rows[at].executions += s->executions;
    rows[at].most = s->executions > rows[at].most ? s->executions : rows[at].most;
}

void qp_span_sites_add_to_sums(const qp_span_sites *sites, uint16_t name, qp_span_sites *outer)
{
    for (uint32_t i = 0; i < sites->count; i++) {
        const qp_span_site *at = &sites->site[i];
        if (at->executions > QP_SPAN_REPEATS) {
            add_repeat(name, at);
        }
        if (outer) {
            qp_span_sites_add_executions(outer, at->statement, at->path, at->executions);
        }
    }
}
