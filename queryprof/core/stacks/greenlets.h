/* The frames of the running greenlet's parents. For example, SQLAlchemy's async engine runs the
 * driver in a greenlet. The frames of the caller are in the parents of this greenlet. */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* Visits a frame. `globals` may be NULL. Returns true to stop. */
typedef bool qp_frame_visitor(void *context, PyCodeObject *code, PyObject *globals,
                              int instruction);

/* Returns whether the greenlet library is loaded. Raises nothing. */
bool qp_greenlets_are_loaded(void);

/* Calls `visit` for each frame of the running greenlet's parents, innermost first, until it returns
 * true; the objects are borrowed. Returns whether there are parents. Raises nothing. */
bool qp_greenlets_visit(qp_frame_visitor *visit, void *context);
