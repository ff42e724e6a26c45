/* Parts of a recording: files in the region's layout. Each part contains the sums since the
 * previous part.
 *
 * A part's name consists of a prefix and a number. A killed process leaves its parts and its
 * region. The region's header has the number of the last part after which its sums were emptied. If
 * there is a part with a higher number, it contains the same sums as the region (or as an older
 * copy of the region). Readers count these sums once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets the prefix (copied) of the paths of parts, which are numbered from 1. If the prefix is too
 * long, no parts are written. */
void qp_parts_set_prefix(const char *prefix);

/* Returns the number of the next part. If another file has that part's name when the part is
 * written, the part gets a higher number. */
uint32_t qp_parts_next_number(void);

/* Writes the region to a new file, in the region's layout: a part of the recording. Returns false
 * if the file cannot be written. Until the sums are emptied and qp_part_end is called, readers of a
 * killed process's memory use only the part. */
bool qp_part_write(void);
void qp_part_end(void);

/* Writes the region as the last part, after the recording has ended. Returns false if the file
 * cannot be written. */
bool qp_part_write_last(void);

/* Returns the errno of the last part that could not be written. */
int qp_part_write_errno(void);

/* Removes the parts before this number. Returns false if there were no such parts, because another
 * process has taken them. */
bool qp_parts_remove_before(uint32_t number);
