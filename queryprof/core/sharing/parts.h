/* Parts of a recording: files in the region's layout, each with the sums since the one before it.
 *
 * Their names are a prefix and a number. A process that was killed leaves its parts and its region,
 * and what is in both counts once: the region's header has the number of the last part that holds
 * its sums, and of the one after which they were emptied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets the prefix of the paths of parts. It is copied; one that is too long counts as empty, and
 * there are no parts. */
void qp_parts_in(const char *prefix);

/* Writes the region to a new file, in the region's layout: a part of the recording. Of the parts
 * before it `kept` - 1 stay (0: all); the one before those is removed and counted as lost, if it is
 * still there. False: it cannot be written, and nothing is removed. Until the sums are emptied and
 * qp_part_end is called, readers of a killed process's memory take the part alone. */
bool qp_part_begin(uint32_t kept);
void qp_part_end(void);

/* Writes the region, whose recording has ended, as the last part. */
bool qp_part_write_last(uint32_t kept);

/* Why the last part could not be written: a number of errno. */
int qp_part_error(void);
