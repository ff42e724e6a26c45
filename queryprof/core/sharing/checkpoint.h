/* Copies of the region on a disk, for machines and containers that go away, and for processes
 * without shared memory.
 *
 * They are made slice by slice, a few at each turn, all of it within an interval: no turn takes
 * long. What one of them holds is of different times; each row is whole, or as it was before. The
 * sums are copied before the names that they refer to.
 */
#ifndef QP_SHARING_CHECKPOINT_H
#define QP_SHARING_CHECKPOINT_H

#include <stdbool.h>

/* Copies go to a file at this path, which is made when there is something to copy; empty: there are
 * none. `if_own`: only while the region is the process's own memory. */
void qp_checkpoint_to(const char *path, double interval_s, bool if_own);

/* Copies what is next; with the GIL, which it gives away while it writes. */
void qp_checkpoint_turn(void);

/* What the sums were is in a part of its own: removes the copy, and begins another. */
void qp_checkpoint_restart(void);

/* In a forked child: the file is the parent's. */
void qp_checkpoint_after_fork(void);

#endif
