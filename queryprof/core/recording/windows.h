/* Windows: the hours of the day (or another part of it) that a recording is divided by.
 *
 * They begin at the multiples of their length since 1970 (UTC). At the first call that ends after
 * such a border, within a second, what was recorded before becomes a part of the recording, a file
 * of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets the length of windows (0: the recording has none), and how many parts are kept. */
void qp_windows_of(int64_t length_ns, uint32_t kept);

/* How many parts are kept; 0: all. */
uint32_t qp_windows_kept(void);

/* Whether the present window, if there is one, is over at this Unix time: its end has come, or the
 * clock was set back to before its start. */
bool qp_window_is_over(int64_t unix_ns);

/* A part begins, at this Unix time or at the border before it. */
void qp_window_begin(int64_t unix_ns, bool at_border);

/* The present window could not be written: it goes on until the next border. */
void qp_window_go_on(int64_t unix_ns);
