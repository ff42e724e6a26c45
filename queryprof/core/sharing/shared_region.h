/* The region as a file in the system's shared memory. The file outlives the process, however the
 * process ends, and other processes may read it at any time.
 *
 * The file is made at the first recorded call. No descriptor is kept, and the file is not opened
 * again. So the program may close descriptors, and change its directory or root. If there is no
 * shared memory, or no room in it, the region stays private.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QP_SHARED_PATH_BYTES = 512 };

/* True if the region must become a file at the next call. */
extern bool qp_share_awaited;

/* Sets the directories, separated by newlines, and the prefix of the file's name. Skips directories
 * that are not on a memory file system. Both texts are copied. If a text is too long, no file is
 * made. */
void qp_region_set_directories(const char *directories, const char *name);

/* Makes the region a file. The caller must hold the GIL. */
void qp_region_share(void);

/* Must be called in periodic work. Requests another try at the next call, if no descriptor was
 * free. */
void qp_region_retry_share(void);

/* Returns true in a forked child if there was no memory for a copy of the region. Later calls
 * return false. */
bool qp_region_is_lost(void);

/* Returns the file's path (static); "" without a file. */
const char *qp_region_path(void);

/* Makes the region private again and keeps its content. The file does not change. */
void qp_region_unshare(void);
