#include "sums/library_times.h"

#include "memory/region.h"
#include "sums/sampled_rows.h"

static qp_sampled_rows rows = {.table = QP_LIBRARY_ROWS, .row_bytes = sizeof(qp_library_row)};

bool qp_library_times_start(void)
{
    return qp_sampled_rows_start(&rows, QP_LIBRARIES);
}

void qp_library_times_stop(void)
{
    qp_sampled_rows_stop(&rows);
}

void qp_library_times_clear(void)
{
    qp_sampled_rows_clear(&rows);
}

qp_library_row *qp_library_times_of(const qp_key *key)
{
    uint32_t number = qp_sampled_row_of(&rows, key);
    return number == UINT32_MAX ? NULL : (qp_library_row *)qp_rows(QP_LIBRARY_ROWS) + number;
}
