/* Checks the guarantees of POINTERS.md while tests run in the sanitized build. In other builds,
 * does nothing. */
#pragma once

#ifdef QP_FAULT_INJECTION
#include <stdio.h>
#include <stdlib.h>

#define QP_ASSERT(condition)                                                           \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "queryprof: %s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                   \
        }                                                                              \
    } while (0)
#else
#define QP_ASSERT(condition) ((void)0)
#endif
