/* Memory for the recorder's tables.
 *
 * Everything the recorder keeps is allocated through here when it starts, so that nothing is
 * allocated on the hot path, and so that the tests can make any single allocation fail.
 */
#pragma once

#include <stddef.h>

/* Zeroed memory for `count` items of `size` bytes, or NULL. The caller owns it: qp_release. */
void *qp_allocate(size_t count, size_t size);

/* Frees memory from qp_allocate; NULL is ignored. */
void qp_release(void *memory);

/* Maps `bytes` bytes of zeros, which take memory only where they are touched; or NULL. They stay
 * mapped for as long as the process runs. */
void *qp_map(size_t bytes);

/* Zeros memory from qp_map, and returns its pages to the system. */
void qp_map_again(void *start, size_t bytes);

#ifdef QP_FAULT_INJECTION
/* Makes the allocation after the next `successes` ones fail, once; negative: none fails. */
void qp_fail_allocation_after(long successes);
#endif
