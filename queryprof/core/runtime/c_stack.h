/* The C stack of the running thread. */
#pragma once

#include <stdint.h>

/* The lowest address of it, which it grows to; UINTPTR_MAX: unknown. */
uintptr_t qp_c_stack_low(void);
