/* A proxy of a coroutine with a watcher, which is called when the coroutine continues, when it
 * pauses and when it has ended. The program sees the proxy as the coroutine: `await`, tasks and
 * asyncio.iscoroutine accept it, and all attributes come from the coroutine. */
#pragma once

#include <Python.h>

/* The watcher. The proxy owns the watcher, and calls `forget` last, which must free the watcher. */
typedef struct qp_watcher {
    void (*continues)(struct qp_watcher *self);
    void (*pauses)(struct qp_watcher *self);
    /* Called with the result (borrowed), or NULL if an exception is set, or the coroutine was
     * closed. */
    void (*ends)(struct qp_watcher *self, PyObject *result);
    void (*forget)(struct qp_watcher *self);
} qp_watcher;

/* Creates the heap type. Returns a new reference, or NULL with an exception. */
PyTypeObject *qp_coroutine_proxy_type(PyObject *module);

/* Returns a new proxy of that type, which takes over the references to the coroutine and the
 * watcher. If out of memory, returns the coroutine, and calls the watcher's `forget`. */
PyObject *qp_coroutine_proxy(PyTypeObject *type, PyObject *coroutine, qp_watcher *watcher);
