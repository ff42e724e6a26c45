"""What a collapsed trace has instead of each process: settings, and threads of no process."""

from __future__ import annotations

from queryprof.trace.checked_rows import CheckedTrace

OF_ALL = 0
"""The process of threads that are of several processes, in a trace that was collapsed."""

MORE_PROCESSES = (
    "more_processes",
    "more_wall_ns",
    "more_start_unix_ns",
    "more_end_unix_ns",
)
"""Settings: how many processes are not listed, their run times, first start, last end."""

MORE_SUMS = tuple(
    f"more_{name}"
    for name in (
        "lost_counters",
        "unasked_plans",
        "unseen_files",
        "read_bytes",
        "written_bytes",
        "flush_ns",
        "folded_statements",
        "folded_calls",
        "lost_windows",
    )
)
"""Settings: sums of columns of `process` over those that are not listed."""

COLLAPSED = (*MORE_PROCESSES, "executing_processes", "executing_wall_ns", "most_threads")
"""Settings: further, of all processes of a collapsed trace that executed something, how many, their
run times, and how many threads of one did at the most.
"""


def settings_of(source: CheckedTrace) -> dict[str, int]:
    """These settings of a trace; empty: it is no collapsed one.

    Raises:
        TraceError: they are not all there.
    """
    settings = dict(source.rows("setting", ("name", "value")))
    found = {name: settings[name] for name in (*COLLAPSED, *MORE_SUMS) if name in settings}
    some = found.keys() & set(MORE_PROCESSES)
    if some and some != set(MORE_PROCESSES):
        raise source.damaged(f"setting has {min(some)} alone, of {len(MORE_PROCESSES)} together")
    return found
