/* Turns: periodic work during a recording. A driver call does this work at its end, if a second has
 * passed since the last turn (less time in the first second). There is no separate thread for
 * turns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* When the next turn is due; UINT64_MAX: never. */
extern uint64_t qp_turn_due_ticks;

/* Runs a turn in the running thread at the end of a call that is not counted yet. The caller must
 * hold the GIL. May run code of the program, because it releases objects. Preserves the current
 * exception. */
void qp_turn_run(void);

/* A function that does the work of a turn. The function is called while the thread is muted, and
 * without a current exception. Returns false if more early turns (qp_turn_request) are useless. */
typedef bool qp_turn_function(uint64_t now_ticks);

/* Start and stop the turns of a recording. */
void qp_turn_start(qp_turn_function *work);
void qp_turn_stop(void);

/* Requests a turn at the end of the next call, unless early turns are useless. */
void qp_turn_request(void);
