/* Copies of the region on a disk, for machines and containers that are shut down, and for processes
 * without shared memory.
 *
 * A copy is written slice by slice, one at each turn, within an interval: no turn takes long. Its
 * rows are of different times; each row is whole, or as it was before. The sums are copied before
 * the names that they refer to.
 */
#pragma once

#include <stdbool.h>

/* Sets the file of the copies, which is created when there is something to copy; empty: no copies.
 * `if_own`: only while the region is private memory. */
void qp_checkpoint_to(const char *path, double interval_s, bool if_own);

/* Copies the next slice. The caller must hold the GIL. The function releases it while it writes. */
void qp_checkpoint_turn(void);

/* After the sums were written to a part: removes the copy, and begins another. */
void qp_checkpoint_restart(void);

/* In a forked child: the file is the parent's. */
void qp_checkpoint_after_fork(void);
