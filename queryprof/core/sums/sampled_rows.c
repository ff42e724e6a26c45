#include "sums/sampled_rows.h"

#include <string.h>

#include "memory/region.h"

bool qp_sampled_rows_start(qp_sampled_rows *rows, uint32_t most)
{
    return qp_index_start(&rows->index, 2 * most);
}

void qp_sampled_rows_stop(qp_sampled_rows *rows)
{
    qp_index_stop(&rows->index);
}

void qp_sampled_rows_clear(qp_sampled_rows *rows)
{
    if (qp_row_count(rows->table)) { /* otherwise a fork would copy pages for nothing */
        memset(rows->index.slots, 0, (rows->index.mask + 1) * sizeof *rows->index.slots);
    }
    qp_rows_clear(rows->table);
}

static qp_sampled_key *key_of_row(const qp_sampled_rows *rows, uint32_t number)
{
    return (qp_sampled_key *)((char *)qp_first_row(rows->table) + (size_t)number * rows->row_bytes);
}

uint32_t qp_sampled_row_number(qp_sampled_rows *rows, const qp_key *key)
{
    qp_index *index = &rows->index;
    uint32_t slot = qp_index_begin(index, qp_hash_mix(key->statement, key->path));
    for (; index->slots[slot]; slot = qp_index_next(index, slot)) {
        uint32_t number = index->slots[slot] - 1;
        const qp_sampled_key *known = key_of_row(rows, number);
        if (known->statement == key->statement && known->path == key->path) {
            return number;
        }
    }
    uint32_t added = qp_rows_add(rows->table, 1);
    if (added != UINT32_MAX) {
        index->slots[slot] = added + 1;
        *key_of_row(rows, added) = (qp_sampled_key){key->statement, key->path};
    }
    return added;
}
