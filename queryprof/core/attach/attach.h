/* Attaches probes to a driver's functions in place, and detaches them.
 *
 * There are four ways. qp_attach uses the first one that is possible:
 * - A C method or getter gets another function pointer in its PyMethodDef or PyGetSetDef. Its
 *   object stays the same.
 * - A type's slot (iteration, creation) gets another pointer in the type, in its subclasses and in
 *   the slot's wrapper.
 * - A Python function stays where it is and calls its wrapper (in_place.h).
 * - A wrapper replaces any other function of a type or module (probe_call.h).
 */
#pragma once

#include <Python.h>

#include "calls/probe.h"
#include "wrappers/module_state.h"

/* Attaches a probe to the function `name` of `owner`, a type or module. `given` contains the
 * function's operation and the C type of the driver's cursors, or NULL. `types` contains the types
 * of wrappers. Keeps new references as needed. Returns a new capsule for the attachment, or NULL
 * with an exception; the function is then not attached. */
PyObject *qp_attach(PyObject *owner, PyObject *name, const qp_probe *given,
                    const qp_module_state *types);

/* Undoes an attachment. Returns 0, or -1 with an exception. Does nothing if the attachment was
 * undone before. */
int qp_detach(PyObject *capsule);

/* Sets an attribute of a type, or deletes the attribute if `value` is NULL, even if the type is
 * immutable. Returns 0, or -1 with an exception. */
int qp_set_type_attribute(PyTypeObject *type, PyObject *name, PyObject *value);
