/* Turns: periodic work while a program records, at the end of a driver call when a second has
 * passed since the last turn, and in its first second more often. No thread of ours runs it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* When the next turn is due; UINT64_MAX: none is. */
extern uint64_t qp_turn_due_ticks;

/* Runs a turn in the running thread at the end of a call that is not counted yet. The caller must
 * hold the GIL. May run code of the program, as any release of an object may; keeps the exception
 * that is set. */
void qp_turn(void);

/* The work of a turn, muted and with no exception set. False if an early turn is of no further use.
 */
typedef bool qp_turn_work(uint64_t now_ticks);

/* For the start and the end of recording. */
void qp_turn_start(qp_turn_work *work);
void qp_turn_stop(void);

/* Makes the end of the next call a turn, if that is of use. */
void qp_turn_soon(void);
