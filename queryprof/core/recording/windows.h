/* Windows: the hours of the day (or another part of it) that a recording is divided by.
 *
 * They begin at the multiples of their length since 1970 (UTC). At the first call that ends after
 * such a border, within a second, what was recorded before becomes a part of the recording, a file
 * of its own. A window has several parts where tables were full, or blocks were recorded for
 * themselves.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets the length of windows (0: the recording has none), and how many are kept; false without
 * memory: it has none. */
bool qp_windows_of(int64_t length_ns, uint32_t kept);

/* While it is held no window is removed: its parts are about to be read. */
void qp_windows_hold(bool is_held);

/* Whether the present window, if there is one, is over at this Unix time: its end has come, or the
 * clock was set back to before its start. */
bool qp_window_is_over(int64_t unix_ns);

/* A part of the present window begins at this Unix time. */
void qp_window_continue(int64_t unix_ns);

/* The next window begins, at the border before this Unix time; at that time itself, if the present
 * one has begun since that border. */
void qp_window_begin(int64_t unix_ns);

/* The present window could not be written: it goes on until the next border. */
void qp_window_go_on(int64_t unix_ns);

/* Removes the windows before the latest, of those that have ended, the present one too if that
 * `has_ended`, and counts them in the header. */
void qp_windows_remove_oldest(bool has_ended);
