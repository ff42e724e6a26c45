"""The errors of the driver's calls for a terminal."""

from __future__ import annotations

from rich.console import RenderableType

from queryprof.analysis.call_sites import call_site
from queryprof.analysis.report import Report
from queryprof.analysis.units import count, counted
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, heading

SHOWN = 5


def errors(report: Report, places: Places) -> list[RenderableType]:
    """The exceptions by type and call site, most first; nothing without any."""
    found: dict[tuple[str, str, str], int] = {}
    for error in report.profile.errors:
        site = places.site(call_site(error.path, report.helpers))
        key = (error.exception, error.statement, site)
        found[key] = found.get(key, 0) + error.count
    if not found:
        return []
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    parts: list[RenderableType] = [heading(f"Errors ({counted(sum(found.values()), 'call')})")]
    for (exception, statement, site), times in ranked[:SHOWN]:
        parts.append(
            Text.assemble(
                f"{count(times):>8}  ", (exception, "red"), "  ", (site, "cyan"), f"  {statement}",
                no_wrap=True, overflow="ellipsis",
            )
        )  # fmt: skip
    if len(ranked) > SHOWN:
        parts.append(Text(f"          {len(ranked) - SHOWN} more: --format json", style="dim"))
    return parts
