/* Parts of a recording: files in the region's layout, each with the sums since the part before.
 *
 * Their names are a prefix and a number. A killed process leaves its parts and its region. Sums
 * that are in both count once: the region's header has the number of the last part after which its
 * sums were emptied. If there is a later part, it contains the sums of the region, or of an older
 * copy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets the prefix of the paths of parts, which are numbered from 1. It is copied. If it is too
 * long, no parts are written. */
void qp_parts_in(const char *prefix);

/* The number that the next part will have, if no other file has its name. */
uint32_t qp_parts_next(void);

/* Writes the region to a new file, in the region's layout: a part of the recording. Returns false
 * if it cannot be written. Until the sums are emptied and qp_part_end is called, readers of a
 * killed process's memory use only the part. */
bool qp_part_begin(void);
void qp_part_end(void);

/* Writes the region, whose recording has ended, as the last part. */
bool qp_part_write_last(void);

/* Why the last part could not be written: a number of errno. */
int qp_part_error(void);

/* Removes the parts before this number that are still there; false if another process has taken
 * them all. */
bool qp_parts_remove_before(uint32_t number);
