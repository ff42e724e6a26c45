/* What queryprof itself costs, as it is measured when recording starts. */
#ifndef QP_PROBE_COST_H
#define QP_PROBE_COST_H

#include <stdint.h>

/* Ticks that queryprof has spent on what is new: texts that were scanned, plans that were asked
 * for, statements that were looked up. With the GIL. */
extern int64_t qp_own_ticks;

/* Nanoseconds that beginning and ending a call take here, measured now. */
double qp_probe_cost_ns(void);

#endif
