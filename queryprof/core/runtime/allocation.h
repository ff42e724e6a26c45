/* Memory for the recorder's tables.
 *
 * The recorder allocates almost everything through these functions when it starts. So nothing is
 * allocated on the hot path, and the tests can make any single allocation fail.
 */
#pragma once

#include <stddef.h>

/* Returns zeroed memory for `count` items of `size` bytes (owned by the caller: qp_free), or
 * NULL. */
void *qp_allocate(size_t count, size_t size);

/* Frees memory from qp_allocate; NULL is ignored. */
void qp_free(void *memory);

/* Maps `bytes` bytes of zeros, which take memory only where they are touched. Returns NULL if out
 * of memory. The bytes stay mapped as long as the process runs. */
void *qp_map_zeros(size_t bytes);

/* Zeros memory from qp_map_zeros, and returns its pages to the system. */
void qp_map_reset(void *start, size_t bytes);

#ifdef QP_FAULT_INJECTION
/* Makes one allocation fail: the allocation after the next `successes` allocations. Negative: no
 * allocation fails. */
void qp_fail_allocation_after(long successes);
#endif
