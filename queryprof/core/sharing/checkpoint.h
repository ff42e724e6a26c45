/* Copies of the region on a disk, for machines and containers that are shut down, and for processes
 * without shared memory.
 *
 * A copy is written in slices, one per turn (see runtime/turn.h), so that no turn takes long. A
 * copy is complete within one interval. Its slices are from different moments. The sums are copied
 * before the names that they refer to, so every name is in the copy.
 */
#pragma once

#include <stdbool.h>

/* Sets the file of the copies, which is created when there is something to copy; empty: no copies.
 * `if_own`: only while the region is private memory. */
void qp_checkpoint_to(const char *path, double interval_s, bool if_own);

/* Copies the next slice. The caller must hold the GIL. The function releases it while it writes. */
void qp_checkpoint_copy_slice(void);

/* After the sums were written to a part: removes the copy, and begins another. */
void qp_checkpoint_restart(void);

/* In a forked child: the file is the parent's. */
void qp_checkpoint_after_fork(void);
