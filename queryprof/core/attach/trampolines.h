/* Trampolines: C functions that replace a driver's function, measure the call and forward it.
 *
 * CPython calls a method through the function pointer in its PyMethodDef and passes no data of
 * ours. So each exchanged function needs a separate trampoline. A fixed number of trampolines is
 * made at compile time for each calling convention.
 */
#pragma once

#include <Python.h>

#include "calls/probe.h"

typedef void (*qp_function)(void);

/* A trampoline: the function that it replaces, and how calls are measured. */
typedef struct {
    qp_probe probe;
    qp_function original; /* kept after the trampoline is released, because another interpreter
                           * may be about to call it */
    bool is_taken;
} qp_trampoline;

/* Takes a free trampoline for METH_* flags and sets `*function` to the trampoline's function.
 * Returns NULL if all trampolines are in use, or if there are none for the calling convention.
 * Clear `is_taken` to release the trampoline. */
qp_trampoline *qp_trampoline_for_method(int flags, qp_function *function);

/* Takes a free trampoline for the getter of an attribute. */
qp_trampoline *qp_trampoline_for_getter(qp_function *function);

/* The type slots that can be exchanged. */
typedef enum {
    QP_SLOT_ITERNEXT,      /* __next__ */
    QP_SLOT_INIT,          /* __init__ */
    QP_SLOT_SUBSCRIPT,     /* __getitem__ of a mapping */
    QP_SLOT_ASS_SUBSCRIPT, /* __setitem__ of a mapping */
    QP_SLOT_NONE
} qp_slot;

/* Takes a free trampoline for a type slot. */
qp_trampoline *qp_trampoline_for_slot(qp_slot slot, qp_function *function);
