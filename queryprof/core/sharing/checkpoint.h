/* Copies of the region on a disk, for machines and containers that are shut down, and for processes
 * without shared memory.
 *
 * A copy is written in slices, one per round of periodic work (runtime/periodic_work.h), so that no
 * round takes long. A copy is complete within one interval. The slices of a copy are from different
 * moments. The sums are copied before the names to which they refer, so the copy contains every
 * name.
 */
#pragma once

#include <stdbool.h>

/* Sets the path of the copies; "" for no copies. The file is created when there is something to
 * copy. `if_own`: copies only while the region is private memory. */
void qp_checkpoint_configure(const char *path, double interval_s, bool if_own);

/* Copies the next slice. The caller must hold the GIL. The function releases the GIL while it
 * writes. */
void qp_checkpoint_copy_slice(void);

/* Must be called after the sums were written to a part. Removes the copy, and begins another
 * copy. */
void qp_checkpoint_restart(void);

/* In a forked child: stops the copies, because the file belongs to the parent. */
void qp_checkpoint_after_fork(void);
