/* Spans: named pieces of the program's work, and their database work.
 *
 * A context variable holds the running span, as a number that contains the number of its name, its
 * slot and a serial number. So the running span is correct across tasks, and in threads that run in
 * a copy of the context. Executions inside a span also count for the outer spans.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "context/slow_spans.h"
#include "memory/execution_row.h"
#include "runtime/thread_local.h"

bool qp_spans_start(void);
void qp_spans_stop(void);

/* Clears the sums; names and numbers stay. */
void qp_spans_clear(void);

/* In a forked child: no span is running. */
void qp_spans_after_fork(void);

/* The context variable whose value is the running span: owned; NULL until there is a span. */
extern PyObject *qp_span_variable;

/* Sets the context variable (takes a new reference). */
void qp_span_set_variable(PyObject *variable);

/* Begins a span with this name inside the running span. Returns the context variable's new value; 0
 * with an exception. */
int64_t qp_span_begin(PyObject *name);

/* Fixes a span's duration. The span is still open until qp_span_end. */
void qp_span_stop_clock(int64_t span);

/* Ends a stopped span, with the executions flushed so far. */
void qp_span_end(int64_t span, bool failed);

/* Counts the time in which a function that the span handed over waited for a thread. Time in which
 * several functions waited counts once. */
void qp_span_add_queue_time(int64_t span, uint64_t handed_ticks, uint64_t started_ticks);

/* Counts the status with which a request ended. */
void qp_span_count_status(int64_t span, int status);

/* Returns a span's flushed executions and its time in the driver; zeros if the span is not
 * running. */
void qp_span_database_figures(int64_t span, int64_t *executions, int64_t *database_ns);

/* Returns a proxy (a new reference) that adds the coroutine's CPU time to the span. Takes over the
 * reference to `coroutine` (see qp_coroutine_proxy). */
PyObject *qp_span_coroutine(PyTypeObject *coroutine_proxy_type, int64_t span, PyObject *coroutine);

/* Moves an execution from statement `from` to its current statement, in the counts of its span. */
void qp_span_change_statement(qp_execution *e, uint32_t from);

/* Returns the running span, also for work that another thread submitted; 0 without a span. Never
 * raises. */
int64_t qp_running_span_find(void);

/* Returns the outermost span around the running span, or the running span if it has no outer span;
 * 0 if no span is running. Never raises. */
int64_t qp_outermost_running_span(void);

static inline int64_t qp_running_span(void)
{
    return qp_span_variable || qp_here.submitter ? qp_running_span_find() : 0;
}

/* Returns the number of a span's name; 0 without a span. */
static inline uint16_t qp_span_name_number(int64_t span)
{
    return (uint16_t)(span & 0xffff);
}

/* Counts an execution for its running span. */
void qp_span_count_execution(qp_execution *e, bool is_query);

/* Adds an execution's work in the driver to its running span. */
void qp_span_add_database(const qp_execution *e, const qp_execution_work *work);

bool qp_span_name_is_known(uint16_t number);
