/* The watchdog: a thread that detects steps which run for too long, and samples where they are. */
#pragma once

#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "loops/loops.h"

/* Samples the step of this number, which still runs. The caller must hold the GIL. The watchdog
 * requested it at `asked_ticks`, and the loop's thread kept it for `gil_ns` while it worked. */
typedef void qp_watchdog_look(qp_running_loop *running_loop, uint64_t number, uint64_t asked_ticks,
                              int64_t gil_ns);

/* Prepares the watchdog; the thread starts with the next loop that runs. Steps from `threshold_s`
 * on are stalls. 0, or -1 with an exception. */
int qp_watchdog_start(double threshold_s, qp_watchdog_look *look);

/* Whether the thread is to start with the next loop that runs, or step of one. */
extern bool qp_watchdog_awaited;

/* Whether the thread sleeps until a step begins: no loop has run a step for a while. */
extern _Atomic bool qp_watchdog_sleeps;

/* Wakes the thread. The caller must hold the GIL. */
void qp_watchdog_wake(void);

/* Starts the thread. The caller must hold the GIL. */
void qp_watchdog_launch(void);

/* Stops the thread and waits for it. Releases the GIL while it waits. */
void qp_watchdog_stop(double timeout_s);

/* In a forked child: clears the thread, which does not exist there. */
void qp_watchdog_after_fork(void);
