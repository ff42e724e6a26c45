#include "loops/stall_events.h"

#include "memory/region.h"
#include "runtime/clock.h"

/* Returns the row for a step's event: the step's row, a new row, or the row of the shortest event;
 * NULL if all events are longer. */
static qp_stall_event_row *event_row_for(const qp_step *step, int64_t ns)
{
    qp_stall_event_row *rows = qp_first_row(QP_STALL_EVENT_ROWS);
    uint32_t count = qp_row_count(QP_STALL_EVENT_ROWS);
    if (step->event && step->event <= count && rows[step->event - 1].step == step->number) {
        return &rows[step->event - 1];
    }
    if (count < QP_STALL_EVENTS) {
        uint32_t added = qp_rows_add(QP_STALL_EVENT_ROWS, 1);
        return added == UINT32_MAX ? NULL : &rows[added];
    }
    qp_stall_event_row *shortest = rows;
    for (uint32_t i = 1; i < count; i++) {
        shortest = rows[i].duration_ns < shortest->duration_ns ? &rows[i] : shortest;
    }
    return ns > shortest->duration_ns ? shortest : NULL;
}

void qp_stall_event_keep(qp_step *step, const qp_stall_row *row, uint32_t stack, int64_t ns)
{
    qp_stall_event_row *place = event_row_for(step, ns);
    if (place) {
        step->event =
            (uint32_t)(place - (qp_stall_event_row *)qp_first_row(QP_STALL_EVENT_ROWS)) + 1;
        *place = (qp_stall_event_row){.loop = row->loop,
                                      .line = row->line,
                                      .path = row->path,
                                      .stack = stack,
                                      .step = step->number,
                                      .started_unix_ns = qp_ticks_to_unix_ns(step->start_ticks),
                                      .duration_ns = ns};
    }
}
