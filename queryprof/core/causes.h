/* What the database time of a step, or of many, went to: by statement and call path. */
#ifndef QP_CAUSES_H
#define QP_CAUSES_H

#include <Python.h>
#include <stdint.h>

enum { QP_CAUSES = 24 };

typedef struct {
    uint32_t statement;
    uint32_t path;
    int64_t calls;
    int64_t ticks;
} qp_cause;

/* The first QP_CAUSES pairs; the rest is in the total alone. */
typedef struct {
    int64_t total_ticks;
    int known;
    qp_cause cause[QP_CAUSES];
} qp_causes;

static inline void qp_causes_add(qp_causes *to, uint32_t statement, uint32_t path, int64_t calls,
                                 int64_t ticks)
{
    to->total_ticks += ticks;
    for (int i = 0; i < to->known; i++) {
        qp_cause *cause = &to->cause[i];
        if (cause->statement == statement && cause->path == path) {
            cause->calls += calls;
            cause->ticks += ticks;
            return;
        }
    }
    if (to->known < QP_CAUSES) {
        to->cause[to->known++] = (qp_cause){statement, path, calls, ticks};
    }
}

/* Adds all of one to another. */
void qp_causes_join(qp_causes *to, const qp_causes *from);

/* Empties them into a new tuple of (statement, path, calls, ns); NULL with an exception, and then
 * they stay. */
PyObject *qp_causes_take(qp_causes *from);

#endif
