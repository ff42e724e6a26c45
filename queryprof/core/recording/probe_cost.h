/* The cost of queryprof itself, measured when recording starts. */
#pragma once

/* Nanoseconds that beginning and ending a call take here, measured now. */
double qp_probe_cost_ns(void);
