#include "distribution.h"

#include <string.h>

PyObject *qp_distribution_take(qp_distribution *from)
{
    Py_ssize_t used = 0;
    for (int i = 0; from->count && i < QP_BUCKETS; i++) {
        used += from->buckets[i] != 0;
    }
    PyObject *buckets = PyTuple_New(2 * used);
    Py_ssize_t at = 0;
    for (int i = 0; buckets && at < 2 * used; i++) {
        if (!from->buckets[i]) {
            continue;
        }
        PyObject *bucket = PyLong_FromLong(i);
        PyObject *count = PyLong_FromUnsignedLong(from->buckets[i]);
        if (!bucket || !count) {
            Py_XDECREF(bucket);
            Py_XDECREF(count);
            Py_CLEAR(buckets);
            break;
        }
        PyTuple_SET_ITEM(buckets, at++, bucket);
        PyTuple_SET_ITEM(buckets, at++, count);
    }
    PyObject *taken =
        buckets ? Py_BuildValue("(LLLN)", (long long)from->count, (long long)from->total_ns,
                                (long long)from->max_ns, buckets)
                : NULL;
    if (taken && from->count) {
        memset(from, 0, sizeof *from);
    }
    return taken;
}
