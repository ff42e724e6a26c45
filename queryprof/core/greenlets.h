/* The frames of greenlets beyond the running one: SQLAlchemy's async engine, for one, runs the
 * driver in a greenlet whose own stack holds no frame of who asked; its parents' do.
 */
#ifndef QP_GREENLETS_H
#define QP_GREENLETS_H

#include <Python.h>
#include <stdbool.h>

/* Calls `visit` for each frame of the running greenlet's parents, innermost first, until it returns
 * true; the code object is borrowed. Returns whether there are parents. Raises nothing. */
bool qp_greenlets_visit(bool (*visit)(void *context, PyCodeObject *code, int instruction),
                        void *context);

#endif
