#include "timeline.h"

#include <string.h>

enum { FIRST_WIDTH_SHIFT = 27 /* 2^27 ns: 134 ms, so that a minute fits before coarsening */ };

typedef struct {
    int64_t calls;
    int64_t rows;
    int64_t self_ns;
} interval;

static struct {
    int shift;     /* an interval is 2^shift ns */
    int64_t first; /* number of intervals[0] since the epoch */
    int64_t low;   /* what is not empty: from here ... */
    int64_t high;  /* ... to before here */
    interval intervals[QP_TIMELINE_INTERVALS];
} line;

void qp_timeline_start(int64_t unix_ns)
{
    memset(&line, 0, sizeof line);
    line.shift = FIRST_WIDTH_SHIFT;
    line.first = unix_ns >> line.shift;
    line.low = QP_TIMELINE_INTERVALS;
}

/* Makes every interval twice as wide: neighbours with the same half number join. */
static void coarsen(void)
{
    interval joined[QP_TIMELINE_INTERVALS] = {{0}};
    int64_t first = line.first >> 1;
    for (int64_t i = 0; i < QP_TIMELINE_INTERVALS; i++) {
        interval *into = &joined[((line.first + i) >> 1) - first];
        into->calls += line.intervals[i].calls;
        into->rows += line.intervals[i].rows;
        into->self_ns += line.intervals[i].self_ns;
    }
    memcpy(line.intervals, joined, sizeof joined);
    line.low = ((line.first + line.low) >> 1) - first;
    line.high = ((line.first + line.high + 1) >> 1) - first;
    line.first = first;
    line.shift++;
}

void qp_timeline_add(int64_t unix_ns, int64_t calls, int64_t rows, int64_t self_ns)
{
    int64_t position = (unix_ns >> line.shift) - line.first;
    if (position < 0) {
        position = 0; /* the wall clock was set back */
    }
    while (position >= QP_TIMELINE_INTERVALS) {
        coarsen();
        position = (unix_ns >> line.shift) - line.first;
    }
    line.low = position < line.low ? position : line.low;
    line.high = position >= line.high ? position + 1 : line.high;
    line.intervals[position].calls += calls;
    line.intervals[position].rows += rows;
    line.intervals[position].self_ns += self_ns;
}

PyObject *qp_timeline_take(void)
{
    PyObject *rows = PyList_New(0);
    for (int64_t i = line.low; rows && i < line.high; i++) {
        interval *at = &line.intervals[i];
        if (!at->calls) {
            continue;
        }
        PyObject *row = Py_BuildValue("(LLLL)", (long long)((line.first + i) << line.shift),
                                      at->calls, at->rows, at->self_ns);
        if (!row || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    if (rows) {
        for (int64_t i = line.low; i < line.high; i++) {
            line.intervals[i] = (interval){0};
        }
        line.low = QP_TIMELINE_INTERVALS;
        line.high = 0;
    }
    return rows ? Py_BuildValue("(LN)", (long long)1 << line.shift, rows) : NULL;
}
