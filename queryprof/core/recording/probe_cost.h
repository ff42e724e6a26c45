/* The cost of queryprof itself, measured when recording starts. */
#pragma once

/* Measures and returns the nanoseconds that beginning and ending a call take on this machine.
 * Clears the recording. */
double qp_probe_cost_ns(void);
