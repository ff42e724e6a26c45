/* Windows: the hours of the day (or another length) that divide a recording.
 *
 * Windows begin at the multiples of their length since 1970 (UTC). A window is written in the first
 * round of periodic work (runtime/periodic_work.h) after its end: a call that ends at least a
 * second after the last round writes the window's data to a part, which is a separate file. A
 * window has several parts if tables were full, or if blocks were recorded separately. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets the length of windows (0 if the recording has no windows), and the number of windows to
 * keep. Returns false if out of memory; the recording then has no windows. */
bool qp_windows_configure(int64_t length_ns, uint32_t kept);

/* Holds the windows, or ends the hold. Held windows are not removed, because their parts are about
 * to be read. */
void qp_windows_prevent_removal(bool is_held);

/* Returns whether the current window is over at this Unix time, or the clock was set back to before
 * its start. */
bool qp_window_is_over(int64_t unix_ns);

/* Begins a part of the current window at this Unix time. */
void qp_window_begin_part(int64_t unix_ns);

/* Begins the next window, at the latest multiple of the window's length before this Unix time. If
 * the current window began after that multiple, the next window begins at this time. */
void qp_window_begin(int64_t unix_ns);

/* Continues the current window until the next window end, because it could not be written. */
void qp_window_extend(int64_t unix_ns);

/* Removes the oldest ended windows, keeps the latest, and counts the removed windows in the header.
 * If `has_ended`, the current window may also be removed. */
void qp_windows_remove_oldest(bool has_ended);
