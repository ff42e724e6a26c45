/* The watchdog: a thread that detects steps that run for too long, and samples their call paths. */
#pragma once

#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "loops/loops.h"

/* A function that samples the step with this number. The caller must hold the GIL, which the
 * watchdog requested at `asked_ticks`. The loop's thread worked for `gil_ns` before it released the
 * GIL. */
typedef void qp_watchdog_sampler(qp_running_loop *running_loop, uint64_t number,
                                 uint64_t asked_ticks, int64_t gil_ns);

/* Prepares the watchdog. The thread starts when the next loop or step runs. Steps of `threshold_s`
 * or longer are stalls. Returns 0, or -1 with an exception. */
int qp_watchdog_prepare(double threshold_s, qp_watchdog_sampler *look);

/* True if the thread must be started when the next loop or step runs. */
extern bool qp_watchdog_awaited;

/* True while the thread sleeps until a step begins, because no loop has run a step for a while. */
extern _Atomic bool qp_watchdog_sleeps;

/* Wakes the thread. The caller must hold the GIL. */
void qp_watchdog_wake(void);

/* Starts the thread. The caller must hold the GIL. */
void qp_watchdog_launch(void);

/* Stops the thread and waits for it. Releases the GIL while it waits. */
void qp_watchdog_stop(double timeout_s);

/* In a forked child: forgets the thread, which does not exist there. */
void qp_watchdog_after_fork(void);
