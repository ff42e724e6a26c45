"""Settings and threads that replace the processes of a collapsed trace."""

from __future__ import annotations

from queryprof.trace.checked_rows import CheckedTrace

ALL_PROCESSES = 0
"""Process id of threads that combine several processes, in a collapsed trace."""

MORE_PROCESSES = (
    "more_processes",
    "more_wall_ns",
    "more_start_unix_ns",
    "more_end_unix_ns",
)
"""Settings on unlisted processes: their number, run times, first start and last end."""

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
"""Settings that sum columns of `process` over the unlisted processes."""

COLLAPSED = (*MORE_PROCESSES, "executing_processes", "executing_wall_ns", "most_threads")
"""All settings of a collapsed trace. The last three describe the processes that executed
statements: their number, their run times, and the most threads of one process.
"""


def collapsed_settings(source: CheckedTrace) -> dict[str, int]:
    """Return the settings of a collapsed trace; empty for other traces.

    Raises:
        TraceError: some of the settings are missing.
    """
    settings = dict(source.rows("setting", ("name", "value")))
    found = {name: settings[name] for name in (*COLLAPSED, *MORE_SUMS) if name in settings}
    some = found.keys() & set(MORE_PROCESSES)
    if some and some != set(MORE_PROCESSES):
        missing = ", ".join(sorted(set(MORE_PROCESSES) - some))
        raise source.damage_error(f"setting has {min(some)}, but not {missing}")
    return found
