/* Attaching probes to a driver's own functions, in place, and taking them off again.
 *
 * Four ways, behind one function: for a C method or getter the function pointer in its PyMethodDef
 * or PyGetSetDef is exchanged, so that the method object stays the same; for a type's slot
 * (iteration, creation) the pointer is exchanged in the type, in its subclasses and in the slot's
 * wrapper; a Python function stays where it is and calls its wrapper (in_place.h); any other
 * function of a type or module is replaced by a wrapper (probe_call.h).
 */
#pragma once

#include <Python.h>

#include "calls/probe.h"
#include "wrappers/module_state.h"

/* Attaches a probe to the function `name` of a type or module, `owner`. `given` holds its
 * operation, and the C type of the driver's cursors, or NULL. `types` make the wrappers. References
 * are taken as needed. Returns a new capsule for the attachment, or NULL with an exception (nothing
 * is changed then). */
PyObject *qp_attach(PyObject *owner, PyObject *name, const qp_probe *given,
                    const qp_module_state *types);

/* Undoes an attachment; 0, or -1 with an exception. Undoing it again does nothing. */
int qp_detach(PyObject *capsule);

/* Sets an attribute of a type that refuses it (immutable C types), or deletes it (value NULL). */
int qp_set_type_attribute(PyTypeObject *type, PyObject *name, PyObject *value);
