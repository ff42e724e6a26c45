#include "sql/words.h"

#include "runtime/allocation.h"
#include "runtime/index.h"

enum { SLOTS = 32768 /* slots for columns known to a process; at most half of them are used */ };

typedef struct {
    uint64_t *slots; /* 0 if free */
    uint32_t count;
} large_set;

static large_set columns;

bool qp_known_columns_start(void)
{
    columns = (large_set){qp_allocate(SLOTS, sizeof(uint64_t)), 0};
    return columns.slots != NULL;
}

void qp_known_columns_stop(void)
{
    qp_free(columns.slots);
    columns = (large_set){NULL, 0};
}

uint64_t qp_word_hash(const char *text, size_t length)
{
    /* FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/), of lower case. */
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        hash = (hash ^ (c >= 'A' && c <= 'Z' ? c | 32u : c)) * 1099511628211u;
    }
    return hash ? hash : 1;
}

/* Returns the slot of a hash among `count` slots (a power of two), or the free slot for the
 * hash. */
static uint64_t *hash_slot(uint64_t *slots, uint32_t count, uint64_t hash)
{
    uint32_t slot = (uint32_t)(hash >> 32) & (count - 1);
    while (slots[slot] && slots[slot] != hash) {
        slot = (slot + 1) & (count - 1);
    }
    return &slots[slot];
}

bool qp_word_set_has(const qp_word_set *set, uint64_t hash)
{
    return *hash_slot((uint64_t *)set->slots, QP_WORD_SLOTS, hash) != 0;
}

void qp_word_set_add(qp_word_set *set, uint64_t hash)
{
    uint64_t *place = hash_slot(set->slots, QP_WORD_SLOTS, hash);
    if (!*place && set->count < QP_WORD_SLOTS / 2) {
        *place = hash;
        set->count++;
    }
}

static void large_set_add(large_set *set, uint64_t hash)
{
    uint64_t *place = set->slots ? hash_slot(set->slots, SLOTS, hash) : NULL;
    if (place && !*place && set->count < SLOTS / 2) {
        *place = hash;
        set->count++;
    }
}

static bool large_set_has(const large_set *set, uint64_t hash)
{
    return set->slots && *hash_slot(set->slots, SLOTS, hash);
}

static uint64_t table_column_hash(uint64_t table, uint64_t column)
{
    uint64_t hash = (table ^ (column >> 17 | column << 47)) * QP_GOLDEN_RATIO;
    return hash ? hash : 1;
}

void qp_known_columns_add(const qp_word *table, const qp_word *column)
{
    large_set_add(&columns, table_column_hash(qp_word_hash(table->text, table->length),
                                              qp_word_hash(column->text, column->length)));
}

bool qp_column_is_known(const qp_sql_words *words, uint64_t column)
{
    for (int i = 0; i < words->table_count; i++) {
        const qp_word *table = &words->tables[i];
        if (large_set_has(&columns,
                          table_column_hash(qp_word_hash(table->text, table->length), column))) {
            return true;
        }
    }
    return false;
}
