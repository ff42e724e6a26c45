"""The report on threads, and on work that other code handed to them, for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.handoffs import HandoffSummary
from queryprof.analysis.report import Report
from queryprof.analysis.threads import cpu_time_by_thread
from queryprof.analysis.units import count, counted, duration, each_if_several, format_bytes
from queryprof.model import Profile
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, borderless_table, heading_line

SHOWN = 3
"""Maximum number of handoffs on the first screen."""

BARS = "▁▂▃▄▅▆▇█"
SPARKLINE_WIDTH = 16
HOUR_NS = 3_600_000_000_000
MIN_RATE_NS = 10_000_000_000
"""Minimum duration in ns of a run whose hourly rates are shown."""


def handoff_summary(report: Report, places: Places) -> list[RenderableType]:
    """Return the work handed to threads, for the first screen; [] without such work."""
    parts: list[RenderableType] = []
    handoffs = report.handoffs
    if handoffs:
        parts.append(
            heading_line(
                f"Work handed to threads ({counted(len(handoffs), 'place')}; all: --by thread)"
            )
        )
        parts += [_handoff_card(found, places) for found in handoffs[:SHOWN]]
    return parts


def _handoff_card(found: HandoffSummary, places: Places) -> RenderableType:
    lines = [
        Text.assemble(
            (places.site(found.site), "bold cyan"),
            f"  {found.kind}: {counted(found.count, 'time')}",
            f", {duration(found.total.mean_ns)}{each_if_several(found.count)}",
            (f", {counted(found.errors, 'error')}" if found.errors else "", "red"),
            f", {count(found.cancelled)} cancelled" if found.cancelled else "",
        ),
        Text.assemble(
            "waited for the thread ",
            (duration(found.queue.mean_ns), "bold"),
            f" (p95 {duration(found.queue.p95_ns)}, max {duration(found.queue.max_ns)}),"
            f" ran {duration(found.run.mean_ns)}",
            (
                f", waited for the loop {duration(found.handback.mean_ns)}"
                if found.handback.count
                else ""
            ),
        ),
    ]
    if found.waits_mostly_in_queue:
        sign = (
            "the connection was busy with other tasks"
            if found.kind == "aiosqlite"
            else "all threads of the pool were busy"
        )
        lines.append(Text(f"! queued longer than it ran: {sign}", "bold yellow"))
    return Padding(Group(*lines), (0, 0, 0, 5))


def thread_tables(report: Report, places: Places, wide: bool) -> list[RenderableType]:
    """Return the threads' usage if known, the processes' I/O, and the work handed to threads."""
    parts: list[RenderableType] = []
    usage, top = report.threads, report.top
    if usage:
        table = borderless_table("\nWhat the threads used")
        names = ["CPU", "system", "read", "written"]
        if wide:
            names = [
                "user",
                "system",
                "yielded",
                "preempted",
                "read",
                "calls",
                "written",
                "calls",
            ]
        for name in names:
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("busy", no_wrap=True, min_width=SPARKLINE_WIDTH)
        table.add_column("thread", overflow="fold", ratio=1)
        part_ns, cpu_ns = cpu_time_by_thread(usage, SPARKLINE_WIDTH)
        highest = max((value for line in cpu_ns.values() for value in line), default=0)
        for name, used in list(usage.items())[:top]:
            figures = [
                duration(used.user_ns + used.system_ns),
                duration(used.system_ns),
                format_bytes(used.read_bytes),
                format_bytes(used.written_bytes),
            ]
            if wide:
                figures = [
                    duration(used.user_ns),
                    duration(used.system_ns),
                    count(used.voluntary_switches),
                    count(used.involuntary_switches),
                    format_bytes(used.read_bytes),
                    count(used.read_calls),
                    format_bytes(used.written_bytes),
                    count(used.write_calls),
                ]
            table.add_row(*figures, sparkline(cpu_ns[name], highest), name)
        parts.append(table)
        if highest:  # 0 if the run was too short for bars
            scale = f"{duration(highest)} in {duration(part_ns)}"
            parts.append(
                Text(
                    f"busy: CPU time during the run; the highest bar is {scale}",
                    "dim",
                )
            )
    parts += _process_io_lines(report.profile)
    handoffs = report.handoffs
    if handoffs:
        parts.append(heading_line("Work handed to threads, by total time"))
        parts += [_handoff_card(found, places) for found in handoffs[:top]]
    return parts


def _process_io_lines(profile: Profile) -> list[RenderableType]:
    """Return a line with the bytes that the processes read and wrote, in total and per hour."""
    known = [p for p in profile.processes if p.read_bytes is not None]
    if not known:
        return []
    more = profile.unlisted.count if profile.unlisted else 0
    starts, ends = [p.start_unix_ns for p in known], [p.end_unix_ns for p in known]
    if profile.unlisted:
        starts, ends = (
            [*starts, profile.unlisted.start_unix_ns],
            [*ends, profile.unlisted.end_unix_ns],
        )
    wall_ns = max(ends) - min(starts)
    read, written = profile.total("read_bytes") or 0, profile.total("written_bytes") or 0
    who = "process" if len(known) + more == 1 else f"{len(known) + more:,} processes"
    text = f"The {who} read {format_bytes(read)} and wrote {format_bytes(written)}"
    if wall_ns >= MIN_RATE_NS:
        hourly = HOUR_NS / wall_ns / 1e6
        text += f": {read * hourly:,.1f} MB and {written * hourly:,.1f} MB per hour"
    return [Text(text)]


def sparkline(values: list[float], highest: float) -> str:
    """Return one bar per value, with `highest` at full height and a space for zero."""
    if not highest:
        return " " * len(values)
    steps = (round(value / highest * (len(BARS) - 1)) for value in values)
    return "".join(BARS[s] if v else " " for s, v in zip(steps, values, strict=True))
