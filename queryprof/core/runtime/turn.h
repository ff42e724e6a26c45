/* What is to be done now and then while a program records: at the end of a driver's call, when a
 * second has passed since the last turn. No thread of ours does it.
 */
#ifndef QP_RUNTIME_TURN_H
#define QP_RUNTIME_TURN_H

#include <stdbool.h>
#include <stdint.h>

/* From then on a turn is due; UINT64_MAX: none is. */
extern uint64_t qp_turn_due_ticks;

/* Does what is due, in the running thread, with the GIL and between calls. May run code of the
 * program, as anything may that lets go of an object; keeps the exception that is set. */
void qp_turn(void);

/* What is done then, muted and with no exception set. False: a turn before its time is of no use
 * any more. */
typedef bool qp_turn_work(uint64_t now_ticks);

/* Recording starts and stops. */
void qp_turn_start(qp_turn_work *work);
void qp_turn_stop(void);

/* The next end of a call is a turn, if that is of use. */
void qp_turn_soon(void);

#endif
