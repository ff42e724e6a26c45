#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pthread_getattr_np */
#endif
#include "runtime/c_stack.h"

#include <stddef.h>

#include <pthread.h>

uintptr_t qp_c_stack_low(void)
{
#if defined(__linux__)
    pthread_attr_t attributes;
    void *low = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return UINTPTR_MAX;
    }
    int failed = pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    return failed ? UINTPTR_MAX : (uintptr_t)low;
#elif defined(__APPLE__)
    pthread_t self = pthread_self();
    return (uintptr_t)pthread_get_stackaddr_np(self) - pthread_get_stacksize_np(self);
#else
    return UINTPTR_MAX;
#endif
}
