/* The C stack of the running thread. */
#pragma once

#include <stdint.h>

/* The lowest address of it, which it grows to; UINTPTR_MAX: unknown. */
uintptr_t qp_c_stack_low(void);

/* Where it is now; no object's address, which AddressSanitizer would guard: greenlets copy stacks.
 */
#define qp_c_stack_here() ((uintptr_t)__builtin_frame_address(0))
