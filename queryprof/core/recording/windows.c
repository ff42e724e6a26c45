#include "recording/windows.h"

#include "memory/region.h"

static struct {
    int64_t length_ns; /* 0: there are none */
    int64_t end_unix_ns;
    uint32_t kept;
} windows;

static int64_t border_before(int64_t unix_ns)
{
    return unix_ns - unix_ns % windows.length_ns;
}

void qp_windows_of(int64_t length_ns, uint32_t kept)
{
    windows.length_ns = length_ns;
    windows.kept = length_ns ? kept : 0;
    qp_head->window_ns = length_ns;
    qp_window_go_on(qp_head->part_start_unix_ns);
}

uint32_t qp_windows_kept(void)
{
    return windows.kept;
}

bool qp_window_is_over(int64_t unix_ns)
{
    return unix_ns >= windows.end_unix_ns || unix_ns < qp_head->part_start_unix_ns;
}

void qp_window_begin(int64_t unix_ns, bool at_border)
{
    bool has_border = at_border && windows.length_ns;
    qp_head->part_start_unix_ns = has_border ? border_before(unix_ns) : unix_ns;
    qp_window_go_on(unix_ns);
}

void qp_window_go_on(int64_t unix_ns)
{
    if (windows.length_ns) {
        windows.end_unix_ns = border_before(unix_ns) + windows.length_ns;
    }
}
