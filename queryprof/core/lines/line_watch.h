/* Times passes of one line of the program, or calls of one function of a library.
 *
 * A pass lasts from the start of the line to the start of the next line of the same frame, or to
 * the frame's end. It includes everything that the line calls: an object mapper builds the
 * statement, makes objects from the rows and commits. The time in which a generator or coroutine is
 * suspended does not count. Foreign calls (see foreign_calls.h) do not count if they take more than
 * a third of the pass, except for the queries in them. On Python 3.11 nothing is timed.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "lines/foreign_calls.h"
#include "memory/tables.h"
#include "threads/threads.h"

typedef struct {
    PyCodeObject *code;        /* owned; NULL if nothing is watched */
    PyThreadState *tstate;     /* the thread of the current or last pass; only compared */
    int first_line, last_line; /* lines of the expression that executes the statement */
    qp_text function, file;    /* function and file of the line */
    bool is_function;          /* all lines of a library's function are watched */
    int tool;
    bool is_changing; /* events are added or removed, which may let other threads run */
    int events;
    int passes;                /* number of ended passes */
    bool has_executed;         /* a pass of this watch has executed a statement */
    int since_pass, elsewhere; /* sampled executions since a pass began (lines/line_choice.c) */
    /* About the pass in progress: */
    uint64_t serial;   /* the number of the pass in this process */
    const void *frame; /* identity of the frame that runs the pass; NULL without a frame */
    bool is_inside;    /* the frame is in the line */
    bool is_suspended; /* the generator or coroutine is suspended in the line */
    bool is_partial;   /* the start of the pass was not seen */
    bool is_mixed;     /* another greenlet has executed something during the pass */
    bool is_foreign;   /* the call in progress since from_ticks is foreign (foreign_calls.h) */
    bool was_foreign;  /* the call in which the generator or coroutine is suspended is foreign */
    uint64_t from_ticks;
    uint64_t executed_ticks; /* start of the first execution since from_ticks; 0: none */
    int64_t ticks, foreign_ticks;
    qp_libraries libraries;
    int64_t spent_ns; /* time spent by all watches of a recording */
} qp_line_watch;

/* The present watch. The choice of a line reads it. */
extern qp_line_watch qp_watched_line;

#if PY_VERSION_HEX >= 0x030C0000

/* Begins to watch the lines from `first_line` to `last_line` of a code object in the running
 * thread, or calls of the code object if both lines are 0. `path` begins with the line. `frame` has
 * run the line since `from_ticks`; NULL if unknown. `libraries` are the known libraries between the
 * line and the driver. Keeps a new reference to `code`. Returns false if another tool uses
 * sys.monitoring. Audit hooks of the program may run; raises nothing. */
bool qp_line_watch_begin(PyCodeObject *code, int first_line, int last_line, uint32_t path,
                         const void *frame, const qp_libraries *libraries, const qp_thread *thread,
                         uint64_t from_ticks);

/* Notes the execution with which a watch began. The execution began at `from_ticks`. */
void qp_line_add_first_execution(const qp_key *key, uint64_t from_ticks);

/* Notes an execution that ends in a thread, and began at `from_ticks`. */
void qp_line_add_execution(const qp_thread *thread, const qp_key *key, uint64_t from_ticks);

/* Removes the events. Audit hooks of the program may run; raises nothing. */
void qp_line_watch_stop(void);

#else

static inline bool qp_line_watch_begin(PyCodeObject *code, int first_line, int last_line,
                                       uint32_t path, const void *frame,
                                       const qp_libraries *libraries, const qp_thread *thread,
                                       uint64_t from_ticks)
{
    (void)code, (void)first_line, (void)last_line, (void)path, (void)frame;
    (void)libraries, (void)thread, (void)from_ticks;
    return false;
}

static inline void qp_line_add_first_execution(const qp_key *key, uint64_t from_ticks)
{
    (void)key, (void)from_ticks;
}

static inline void qp_line_add_execution(const qp_thread *thread, const qp_key *key,
                                         uint64_t from_ticks)
{
    (void)thread, (void)key, (void)from_ticks;
}

static inline void qp_line_watch_stop(void) {}

#endif
