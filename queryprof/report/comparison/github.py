"""Regressions as annotations of a pull request, in GitHub's workflow commands.

(https://docs.github.com/actions/reference/workflow-commands-for-github-actions)
"""

from __future__ import annotations

from collections.abc import Iterable

from queryprof.comparing.comparison_result import MetricChange, StatementChange
from queryprof.report.inert import escape_github_message, escape_github_property
from queryprof.report.places import Places
from queryprof.report.text.comparison import change_line, changed_thing


def comparison_github(failed: Iterable[StatementChange | MetricChange], places: Places) -> str:
    """Return one annotation per regression, at the line of its call site."""
    return "\n".join(_annotation(change, places) for change in failed)


def _annotation(change: StatementChange | MetricChange, places: Places) -> str:
    sites = change.sites if isinstance(change, StatementChange) else ()
    frame = sites[0].site.frame if sites else None
    place = ""
    if frame:
        line = f"line={frame.line}," if frame.line else ""
        place = f"file={escape_github_property(places.file(frame.file))},{line}"
    return (
        f"::error {place}title=queryprof::"
        f"{escape_github_message(f'{changed_thing(change)}: {change_line(change)}')}"
    )
