/* Hints to the compiler about code that seldom runs. */
#pragma once

#include <stdatomic.h>

/* Separates a function from the code that always runs: not inlined, and placed elsewhere. */
#if defined(__GNUC__)
#define QP_COLD __attribute__((cold, noinline))
#else
#define QP_COLD __declspec(noinline)
#endif

/* Stores a value after all earlier stores: for readers of the memory from outside, or after the
 * process was killed. */
#if defined(__GNUC__)
#define qp_release_store(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
#else
#define qp_release_store(place, value) (*(volatile __typeof__(*(place)) *)(place) = (value))
#endif

/* Enclose a change of a row that other processes read. The row's sequence number is odd during the
 * change, and has a new, even value afterwards. Neither the processor nor the compiler moves a
 * store across these macros. */
#define qp_change_begins(row)                                    \
    do {                                                         \
        qp_release_store(&(row)->sequence, (row)->sequence + 1); \
        atomic_thread_fence(memory_order_release);               \
    } while (0)
#define qp_change_ends(row) qp_release_store(&(row)->sequence, (row)->sequence + 1)

/* Always inlined, even if large: for code that runs for every row. */
#if defined(__GNUC__)
#define QP_INLINE inline __attribute__((always_inline))
#else
#define QP_INLINE __forceinline
#endif

/* Lets a function be found by its name in the shared library. */
#if defined(__GNUC__)
#define QP_EXPORTED __attribute__((visibility("default")))
#else
#define QP_EXPORTED __declspec(dllexport)
#endif
