/* The watchdog: sees from a thread of its own that a step runs on for too long, and where it is. */
#ifndef QP_LOOPS_WATCHDOG_H
#define QP_LOOPS_WATCHDOG_H

#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "loops/loops.h"

/* Looks at the step of a number that has run on in a running_loop; with the GIL, which was asked
 * for then.
 */
typedef void qp_watchdog_look(qp_running_loop *running_loop, uint64_t number, uint64_t asked_ticks);

/* Gets ready; the thread starts with the next loop that runs. Steps from `threshold_s` on are
 * stalls. 0, or -1 with an exception. */
int qp_watchdog_start(double threshold_s, qp_watchdog_look *look);

/* Whether the thread shall start with the next loop that runs, or step of one. */
extern bool qp_watchdog_awaited;

/* Whether the thread sleeps until a step begins: no loop has done anything for a while. */
extern _Atomic bool qp_watchdog_sleeps;

/* Wakes the thread; with the GIL. */
void qp_watchdog_wake(void);

/* Starts the thread; with the GIL. */
void qp_watchdog_launch(void);

/* Stops the thread and waits for it, without the GIL. */
void qp_watchdog_stop(double timeout_s);

/* Forgets the thread, in a forked child: it is not there. */
void qp_watchdog_after_fork(void);

#endif
