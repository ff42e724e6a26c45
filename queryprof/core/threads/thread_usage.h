/* What the threads that call drivers use, told by themselves: now and then, and when they end, as
 * /proc forgets them then.
 */
#ifndef QP_THREADS_THREAD_USAGE_H
#define QP_THREADS_THREAD_USAGE_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

/* Guards the rows of threads and tasks, which a thread that ends changes without the GIL: held
 * while their memory is exchanged or emptied, and never while waiting for anything. */
void qp_thread_usage_lock(void);
void qp_thread_usage_unlock(void);

/* The running thread, which Python knows by `id`, has this name in this recording from now on. With
 * the GIL, as the next one. */
void qp_thread_usage_begin(uint64_t id, uint16_t name, uint32_t recording);

/* Notes what the running thread has used up to now. */
void qp_thread_usage_read(void);

/* So many bytes that the running thread has written are not the program's. */
void qp_thread_usage_leave_out(int64_t written_bytes);

/* The running thread ends: adds what it has used to the threads of its name. Needs no GIL. */
void qp_thread_usage_end(void);

/* Adds what a living thread, which the system knows by `kernel_id`, has used to those of its name:
 * since it was last counted so, which the caller knows (`before`) of those that never called a
 * driver. */
void qp_thread_usage_count(int64_t kernel_id, uint16_t name, const qp_usage *now,
                           const qp_usage *before);

/* Recording starts: threads that there are count from their first call on, later ones from their
 * beginning. */
void qp_thread_usage_start(void);

/* Drops what was noted. */
void qp_thread_usage_clear(void);

/* In a forked child: makes a new lock. */
void qp_thread_usage_after_fork(void);

#endif
