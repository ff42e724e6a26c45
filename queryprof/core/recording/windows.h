/* Windows: the hours of the day (or another length) that divide a recording.
 *
 * They begin at the multiples of their length since 1970 (UTC). At the first call that ends after
 * the end of a window, or within a second, the data recorded in the window becomes a part of the
 * recording, a file of its own. A window has several parts if tables were full, or if blocks were
 * recorded separately. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets the length of windows (0 if the recording has none), and how many are kept; false without
 * memory: it has none. */
bool qp_windows_of(int64_t length_ns, uint32_t kept);

/* While it is held no window is removed: its parts are about to be read. */
void qp_windows_hold(bool is_held);

/* Returns whether the present window, if any, is over at this Unix time: its end has come, or the
 * clock was set back to before its start. */
bool qp_window_is_over(int64_t unix_ns);

/* A part of the present window begins at this Unix time. */
void qp_window_continue(int64_t unix_ns);

/* The next window begins at the latest multiple of the window's length before this Unix time, or at
 * this time itself if the present window began after that multiple. */
void qp_window_begin(int64_t unix_ns);

/* The present window could not be written: it continues until the next window end. */
void qp_window_go_on(int64_t unix_ns);

/* Removes the oldest ended windows, except the latest ones, and counts them in the header. If
 * `has_ended`, the present window may also be removed. */
void qp_windows_remove_oldest(bool has_ended);
