#include "recording/windows.h"

#include "memory/region.h"
#include "runtime/allocation.h"
#include "sharing/parts.h"

static struct {
    int64_t length_ns; /* 0: no windows */
    int64_t end_unix_ns;
    uint32_t kept;
    uint32_t present;      /* number of the current window, from 0 */
    uint32_t oldest;       /* number of the oldest window that was not removed */
    uint32_t *first_parts; /* owned: the first part of each of the last kept + 1 windows */
    bool is_held;
} windows;

static int64_t window_start_before(int64_t unix_ns)
{
    return unix_ns - unix_ns % windows.length_ns;
}

static uint32_t *first_part_of(uint32_t window)
{
    return &windows.first_parts[window % (windows.kept + 1)];
}

bool qp_windows_configure(int64_t length_ns, uint32_t kept)
{
    qp_free(windows.first_parts);
    windows.first_parts = length_ns ? qp_allocate(kept + 1, sizeof *windows.first_parts) : NULL;
    windows.length_ns = windows.first_parts ? length_ns : 0;
    windows.kept = kept;
    windows.present = windows.oldest = 0;
    windows.is_held = false;
    qp_head->window_ns = windows.length_ns;
    qp_head->lost_windows = 0;
    if (windows.length_ns) {
        *first_part_of(0) = qp_parts_next_number();
        qp_window_extend(qp_head->part_start_unix_ns);
    }
    return !length_ns || windows.length_ns;
}

void qp_windows_prevent_removal(bool is_held)
{
    windows.is_held = is_held;
}

bool qp_window_is_over(int64_t unix_ns)
{
    return unix_ns >= windows.end_unix_ns || unix_ns < qp_head->part_start_unix_ns;
}

void qp_window_begin_part(int64_t unix_ns)
{
    qp_head->part_start_unix_ns = unix_ns;
}

void qp_window_begin(int64_t unix_ns)
{
    int64_t border = windows.length_ns ? window_start_before(unix_ns) : unix_ns;
    bool is_ended_early =
        border <= qp_head->part_start_unix_ns && qp_head->part_start_unix_ns <= unix_ns;
    qp_head->part_start_unix_ns = is_ended_early ? unix_ns : border;
    qp_window_extend(unix_ns);
    if (windows.length_ns) {
        *first_part_of(++windows.present) = qp_parts_next_number();
        qp_windows_remove_oldest(false);
    }
}

void qp_window_extend(int64_t unix_ns)
{
    if (windows.length_ns) {
        windows.end_unix_ns = window_start_before(unix_ns) + windows.length_ns;
    }
}

void qp_windows_remove_oldest(bool has_ended)
{
    uint32_t ended = windows.present + has_ended;
    uint32_t oldest = ended > windows.kept ? ended - windows.kept : 0;
    if (!windows.length_ns || windows.is_held || oldest <= windows.oldest) {
        return;
    }
    if (qp_parts_remove_before(*first_part_of(oldest))) {
        qp_head->lost_windows += oldest - windows.oldest;
    }
    windows.oldest = oldest;
}
