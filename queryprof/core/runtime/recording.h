/* The present recording: its number, and what it has cost up to now. */
#ifndef QP_RUNTIME_RECORDING_H
#define QP_RUNTIME_RECORDING_H

#include <stdint.h>

/* The number of the present recording; 0: none. */
extern uint32_t qp_recording;

/* Ticks that queryprof has spent on what is new: texts that were scanned, plans that were asked
 * for, statements that were looked up. With the GIL. */
extern int64_t qp_own_ticks;

#endif
