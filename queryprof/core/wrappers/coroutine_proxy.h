/* A coroutine with a watcher: it is called when the coroutine goes on, when it pauses
 * and when it has ended. To the program it is the coroutine: `await`, tasks and asyncio.iscoroutine
 * take it, and all attributes are the coroutine's.
 */
#ifndef QP_WRAPPERS_COROUTINE_PROXY_H
#define QP_WRAPPERS_COROUTINE_PROXY_H

#include <Python.h>

/* Who watches. It is owned by the awaited object, which calls `forget` last. */
typedef struct qp_watcher {
    void (*goes_on)(struct qp_watcher *self);
    void (*pauses)(struct qp_watcher *self);
    /* With the result (borrowed), or NULL: the exception that is set, or it was closed. */
    void (*ends)(struct qp_watcher *self, PyObject *result);
    void (*forget)(struct qp_watcher *self);
} qp_watcher;

/* Makes the heap type; a new reference, or NULL with an exception. */
PyTypeObject *qp_coroutine_proxy_type(PyObject *module);

/* A new object of that type around a coroutine, whose reference it takes, as it takes the watcher.
 * Without memory the coroutine itself is returned, and the watcher is forgotten. */
PyObject *qp_coroutine_proxy(PyTypeObject *type, PyObject *coroutine, qp_watcher *watcher);

#endif
