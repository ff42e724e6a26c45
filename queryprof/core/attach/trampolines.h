/* Trampolines: C functions that stand in for a driver's own and forward to it, measured.
 *
 * CPython calls a method through the function pointer in its PyMethodDef and gives it no room
 * for data of ours; so each exchanged function has a trampoline of its own, from a fixed number
 * made at compile time for each calling convention.
 */
#ifndef QP_ATTACH_TRAMPOLINES_H
#define QP_ATTACH_TRAMPOLINES_H

#include <Python.h>

#include "calls/probe.h"

typedef void (*qp_function)(void);

/* One trampoline: which function it stands in for, and how that is measured. */
typedef struct {
    qp_probe probe;
    qp_function
        original; /* stays when it is given back: another interpreter may be about to call it */
    bool is_taken;
} qp_trampoline;

/* Takes a free trampoline for METH_* flags and gives its function; NULL without a free one or
 * for a calling convention that has none. Given back by `is_taken`. */
qp_trampoline *qp_trampoline_for_method(int flags, qp_function *function);

/* The type slots that can be exchanged. */
typedef enum {
    QP_SLOT_ITERNEXT,      /* __next__ */
    QP_SLOT_INIT,          /* __init__ */
    QP_SLOT_SUBSCRIPT,     /* __getitem__ of a mapping */
    QP_SLOT_ASS_SUBSCRIPT, /* __setitem__ of a mapping */
    QP_SLOT_NONE
} qp_slot;

/* The same for a type slot. */
qp_trampoline *qp_trampoline_for_slot(qp_slot slot, qp_function *function);

#endif
