#include "allocation.h"

#include <stdlib.h>

#ifdef QP_FAULT_INJECTION
static long successes_left = -1;

void qp_fail_allocation_after(long successes)
{
    successes_left = successes;
}
#endif

void *qp_allocate(size_t count, size_t size)
{
#ifdef QP_FAULT_INJECTION
    if (successes_left >= 0 && successes_left-- == 0) {
        return NULL;
    }
#endif
    /* calloc of a large table gives untouched pages: memory is used only as the table fills. */
    return calloc(count, size);
}

void qp_release(void *memory)
{
    free(memory);
}
