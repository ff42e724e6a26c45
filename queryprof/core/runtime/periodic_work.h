/* Periodic work during a recording, in rounds. A driver call runs a round at its end, if a second
 * has passed since the last round (less time in the first second). There is no separate thread for
 * this work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* When the next round is due; UINT64_MAX: never. */
extern uint64_t qp_periodic_due_ticks;

/* Runs a round in the running thread at the end of a call that is not counted yet. The caller must
 * hold the GIL. May run code of the program, because it releases objects. Preserves the current
 * exception. */
void qp_periodic_run(void);

/* A function that does the work of a round. The function is called while the thread is muted, and
 * without a current exception. Returns false if more early rounds (qp_periodic_request) are
 * useless. */
typedef bool qp_periodic_function(uint64_t now_ticks);

/* Start and stop the periodic work of a recording. */
void qp_periodic_start(qp_periodic_function *work);
void qp_periodic_stop(void);

/* Requests a round at the end of the next call, unless early rounds are useless. */
void qp_periodic_request(void);
