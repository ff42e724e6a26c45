/* The present recording: its number, and its cost so far. */
#pragma once

#include <stdint.h>

/* The number of the present recording; 0: none. */
extern uint32_t qp_recording;

/* Ticks that queryprof has spent on what is new: scans of texts, requests of plans, lookups of
 * statements. With the GIL. */
extern int64_t qp_own_ticks;
