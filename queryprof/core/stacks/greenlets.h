/* The frames of greenlets beyond the running one: SQLAlchemy's async engine, for one, runs the
 * driver in a greenlet whose own stack has no frame of the caller; its parents' stacks do.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* Visits a frame; `globals` may be NULL. True: stop. */
typedef bool qp_frame_visitor(void *context, PyCodeObject *code, PyObject *globals,
                              int instruction);

/* Returns whether greenlets may run; raises nothing. */
bool qp_greenlets_are_loaded(void);

/* Calls `visit` for each frame of the running greenlet's parents, innermost first, until it returns
 * true; the objects are borrowed. Returns whether there are parents. Raises nothing. */
bool qp_greenlets_visit(qp_frame_visitor *visit, void *context);
