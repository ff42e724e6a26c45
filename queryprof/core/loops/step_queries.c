#include "loops/step_queries.h"

#include "memory/region.h"

/* Returns the row of a statement and call path in a list, and adds a new pair. Returns NULL if the
 * list is full. */
static qp_cause_row *find_or_add_cause(qp_cause_list *list, uint32_t statement, uint32_t path)
{
    qp_cause_row *rows = qp_first_row(QP_CAUSE_ROWS);
    for (uint32_t at = list->first; at; at = rows[at - 1].next) {
        if (rows[at - 1].statement == statement && rows[at - 1].path == path) {
            return &rows[at - 1];
        }
    }
    uint32_t added = list->known < QP_CAUSES_LISTED ? qp_rows_add(QP_CAUSE_ROWS, 1) : UINT32_MAX;
    if (added == UINT32_MAX) {
        return NULL;
    }
    rows[added] = (qp_cause_row){.next = list->first, .statement = statement, .path = path};
    list->first = added + 1;
    list->known++;
    return &rows[added];
}

void qp_step_queries_merge(qp_cause_list *to, const qp_step_queries *from)
{
    to->database_ticks += from->total_ticks;
    for (int i = 0; i < from->known; i++) {
        const qp_step_query *cause = &from->cause[i];
        qp_cause_row *row = find_or_add_cause(to, cause->statement, cause->path);
        if (row) {
            row->calls += cause->calls;
            row->ticks += cause->ticks;
        }
    }
}
