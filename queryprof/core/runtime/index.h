/* A hash index that finds rows: open addressing, linear probing (Knuth, TAOCP 6.4).
 *
 * The caller compares the rows. Start at the slot qp_index_begin(index, hash). Go on with
 * qp_index_next while the slot contains another row. If the slot is free, the row is not in the
 * index: store 1 + the row's number there to add the row.
 *
 * The index must never be full, so it has twice as many slots as there are rows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/allocation.h"

typedef struct {
    uint32_t *slots; /* 1 + number; 0 if free */
    uint32_t mask;
} qp_index;

/* Allocates `slots` slots, a power of two. Returns false if out of memory. */
static inline bool qp_index_start(qp_index *index, uint32_t slots)
{
    index->slots = qp_allocate(slots, sizeof *index->slots);
    index->mask = slots - 1;
    return index->slots != NULL;
}

static inline void qp_index_stop(qp_index *index)
{
    qp_free(index->slots);
    *index = (qp_index){0};
}

static inline uint32_t qp_index_begin(const qp_index *index, uint64_t hash)
{
    return (uint32_t)hash & index->mask;
}

static inline uint32_t qp_index_next(const qp_index *index, uint32_t slot)
{
    return (slot + 1) & index->mask;
}

/* 2^64 / golden ratio: multiplication with it spreads a value over all bits (Knuth, TAOCP 6.4). */
#define QP_GOLDEN_RATIO 0x9E3779B97F4A7C15u

/* Mixes a value into a hash. */
static inline uint64_t qp_hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * QP_GOLDEN_RATIO;
    return hash ^ (hash >> 32);
}

/* FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/). */
static inline uint64_t qp_hash_bytes(const char *bytes, size_t length)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
    }
    return hash;
}
