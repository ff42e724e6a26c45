/* The sums of held locks, and the longest holds and waits with their times. */
#pragma once

#include <stdint.h>

#include "memory/file_rows.h"

/* Adds locks that were held. The caller must hold the GIL. */
void qp_lock_sums_add(const qp_lock *lock, const qp_lock_sums *held);

/* Keeps a hold or wait of at least a millisecond. A full table keeps the newest ones and the
 * longest ones. The caller must hold the GIL. */
void qp_lock_event_add(const qp_lock *lock, const qp_lock_time *when);
