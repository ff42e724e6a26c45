#include "sums/line_times.h"

#include "memory/region.h"
#include "sums/sampled_rows.h"

static qp_sampled_rows rows = {.table = QP_LINE_TIME_ROWS, .row_bytes = sizeof(qp_line_time_row)};

bool qp_line_times_start(void)
{
    return qp_sampled_rows_start(&rows, QP_LINE_TIMES);
}

void qp_line_times_stop(void)
{
    qp_sampled_rows_stop(&rows);
}

void qp_line_times_clear(void)
{
    qp_sampled_rows_clear(&rows);
}

qp_line_time_row *qp_line_times_row(const qp_key *key)
{
    uint32_t number = qp_sampled_row_number(&rows, key);
    return number == UINT32_MAX ? NULL
                                : (qp_line_time_row *)qp_first_row(QP_LINE_TIME_ROWS) + number;
}
