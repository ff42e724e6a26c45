#include "sums/operators.h"

#include "memory/region.h"

bool qp_operator_add(const qp_operator_key *key, const qp_operator_sums *more)
{
    static uint32_t last; /* the operators of a plan follow each other */
    qp_operator_row *rows = qp_rows(QP_OPERATOR_ROWS);
    uint32_t count = qp_row_count(QP_OPERATOR_ROWS);
    uint32_t number = QP_OPERATORS;
    for (uint32_t i = 0; i < count && number == QP_OPERATORS; i++) {
        uint32_t next = (last + 1 + i) % count;
        number = memcmp(&rows[next].key, key, sizeof *key) ? QP_OPERATORS : next;
    }
    if (number == QP_OPERATORS) {
        number = qp_rows_add(QP_OPERATOR_ROWS, 1);
        if (number == UINT32_MAX) {
            return false;
        }
        rows[number] = (qp_operator_row){.key = *key};
    }
    last = number;
    qp_operator_sums *to = &rows[number].sums;
    QP_OPERATOR_SUMS(QP_ADD_SUM)
    return true;
}
