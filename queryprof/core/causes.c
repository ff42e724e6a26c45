#include "causes.h"

#include "callpath.h"
#include "clock.h"

void qp_causes_join(qp_causes *to, const qp_causes *from)
{
    int64_t listed_ticks = 0;
    for (int i = 0; i < from->known; i++) {
        const qp_cause *cause = &from->cause[i];
        listed_ticks += cause->ticks;
        qp_causes_add(to, cause->statement, cause->path, cause->calls, cause->ticks);
    }
    to->total_ticks += from->total_ticks - listed_ticks;
}

PyObject *qp_causes_take(qp_causes *from)
{
    PyObject *rows = PyTuple_New(from->known);
    for (int i = 0; rows && i < from->known; i++) {
        const qp_cause *cause = &from->cause[i];
        PyObject *row =
            Py_BuildValue("(IILL)", (unsigned)cause->statement, (unsigned)cause->path,
                          (long long)cause->calls, (long long)qp_clock_ns(cause->ticks));
        if (!row) {
            Py_CLEAR(rows);
            break;
        }
        PyTuple_SET_ITEM(rows, i, row);
    }
    if (rows) {
        from->known = 0;
        from->total_ticks = 0;
    }
    return rows;
}
