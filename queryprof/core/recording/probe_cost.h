/* The cost of queryprof itself, measured when recording starts. */
#ifndef QP_RECORDING_PROBE_COST_H
#define QP_RECORDING_PROBE_COST_H

/* Nanoseconds that beginning and ending a call take here, measured now. */
double qp_probe_cost_ns(void);

#endif
