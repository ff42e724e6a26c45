/* The region as a file in the system's shared memory: it outlives the process, however that ends,
 * and others may read it while the process runs.
 *
 * It becomes one at the first call that is recorded. No descriptor is kept, and nothing is opened
 * again: what the program does to its descriptors, directories or root does not matter. Where there
 * is no shared memory, or no room in it, the region stays the process's own.
 */
#ifndef QP_SHARING_SHARED_REGION_H
#define QP_SHARING_SHARED_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QP_SHARED_PATH_BYTES = 512 };

/* Whether the region is to become a file at the next call. */
extern bool qp_share_awaited;

/* Says where: directories (each on a memory file system, or not taken), divided by newlines, and
 * the beginning of the file's name; and what the paths of parts begin with. They are copied; one
 * that is too long counts as empty, and there is no file. */
void qp_region_share_in(const char *directories, const char *name, const char *parts);

/* Makes the region a file; with the GIL. */
void qp_region_share(void);

/* At a turn: tries again at the next call, where there was no descriptor to spare. */
void qp_region_share_again(void);

/* In a forked child, once: whether there was no memory for a region of its own. */
bool qp_region_is_lost(void);

/* The file's path; empty: there is none. */
const char *qp_region_path(void);

/* The region is the process's own from here on, with what it holds; the file stays as it is. */
void qp_region_unshare(void);

/* Writes what the region holds to a new file, in the region's own layout: a part of the recording.
 * False: it cannot be written. Until the sums are emptied and the next one is called, who reads the
 * memory of a killed process takes the part alone. */
bool qp_region_begin_part(void);
void qp_region_end_part(void);

#endif
