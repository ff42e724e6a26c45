"""Errors of driver calls, for a terminal."""

from __future__ import annotations

from rich.console import RenderableType

from queryprof.analysis.report import Report
from queryprof.analysis.units import count, counted
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, heading_line

MAX_SHOWN = 5


def error_list(report: Report, places: Places) -> list[RenderableType]:
    """Return the exceptions by type and call site, most frequent first; [] without errors."""
    found = report.errors
    if not found:
        return []
    parts: list[RenderableType] = [
        heading_line(f"Errors ({counted(sum(one.count for one in found), 'call')})")
    ]
    parts += [
        Text.assemble(
            f"{count(error.count):>8}  ",
            (error.exception, "red"),
            "  ",
            (places.site(error.site), "cyan"),
            f"  {error.statement}",
            no_wrap=True,
            overflow="ellipsis",
        )
        for error in found[:MAX_SHOWN]
    ]
    if len(found) > MAX_SHOWN:
        parts.append(Text(f"          {len(found) - MAX_SHOWN} more: --format json", style="dim"))
    return parts
