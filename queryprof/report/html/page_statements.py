"""Page data of the statements: figures, call sites, plans, slowest executions and source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from queryprof.analysis.histogram import add_histograms
from queryprof.analysis.marks import mark_of
from queryprof.analysis.plans import plans_by_statement
from queryprof.analysis.report import Report
from queryprof.analysis.totals import (
    Totals,
    add_aggregates,
    executions_of,
    group_aggregates,
    self_ns_of,
)
from queryprof.findings.finding import Finding
from queryprof.model import Aggregate, Exemplar, Frame
from queryprof.report.html.numbers import TextNumbers
from queryprof.report.text.cards import findings_at
from queryprof.report.text.plans import marked_steps

Groups = Sequence[tuple[str, list[Aggregate]]]
"""The statements of the page with their aggregates, longest time first."""

MAX_SITES_PER_STATEMENT = 20
MAX_DETAILED = 1000
"""Maximum number of statements with a plan, a histogram, executions and source. Other statements
have only figures.
"""

MAX_SOURCES = 400
"""Maximum number of call sites whose source is shown."""

SourceLines = Callable[[Frame], Sequence[tuple[int, str]] | None]
"""Returns (number, text) of each source line around a frame; None if the source is unknown."""

FIGURES = (
    "self_ns",
    "executions",
    "mean_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "max_ns",
    "rows_each",
    "vm_steps",
    "full_scan_steps",
    "page_fetches",
    "errors",
)


class PageStatements:
    """The statements as columns.

    Args:
        before_ns: time of each statement in another recording; None without another recording.
    """

    def __init__(
        self,
        report: Report,
        groups: Groups,
        numbers: TextNumbers,
        before_ns: Mapping[str, int] | None,
    ) -> None:
        self._report, self._groups = report, groups
        self._numbers, self._before_ns = numbers, before_ns
        self._totals = [add_aggregates(group) for _, group in groups]

    def columns(self) -> dict[str, Any]:
        """Return the figures of all statements, and their call sites."""
        found: dict[str, Any] = {
            name: [_figure_value(totals, name) for totals in self._totals] for name in FIGURES
        }
        found["text"] = [self._numbers.text_number(statement) for statement, _ in self._groups]
        sites = [
            self._sites_of(group, has_callers=number < MAX_DETAILED)
            for number, (_, group) in enumerate(self._groups)
        ]
        found["sites"] = [shown for shown, _ in sites]
        found["site_count"] = [all_sites for _, all_sites in sites]
        if self._before_ns is not None:
            found["before_ns"] = [self._before_ns.get(statement) for statement, _ in self._groups]
        return found

    def _sites_of(self, group: list[Aggregate], has_callers: bool) -> tuple[list[list[int]], int]:
        """Return the most expensive sites of a statement, and the total number of its sites.

        A site is [site number, ns, executions]. With `has_callers`, it also has the number of the
        caller on its most expensive call path.
        """
        sites = self._report.sites
        by_place = group_aggregates(group, lambda a: sites.place(a.path))
        called = [members for members in by_place.values() if any(a.count for a in members)]
        called.sort(key=self_ns_of, reverse=True)
        shown = []
        for members in called[:MAX_SITES_PER_STATEMENT]:
            site = sites.site(max(members, key=lambda a: a.self_ns).path)
            row = [
                self._numbers.site_number(site.frame),
                self_ns_of(members),
                executions_of(members),
            ]
            if has_callers:
                row.append(self._numbers.site_number(site.callers[0] if site.callers else None))
            shown.append(row)
        return shown, len(called)

    def details(self, findings: Sequence[Finding]) -> list[dict[str, Any]]:
        """Return plans, histograms, executions and notes of the most expensive statements."""
        profile, text = self._report.profile, self._numbers.text_number
        plans = plans_by_statement(profile.plans)
        exemplars: dict[str, list[Exemplar]] = {}
        for one in profile.exemplars:
            exemplars.setdefault(one.statement, []).append(one)
        first = {one.statement: one for one in reversed(self._report.ranking.bottlenecks)}
        start_ns = min((process.recorded_unix_ns for process in profile.processes), default=0)
        database_ns = self._report.overview.database_ns or 1
        found = []
        for (statement, group), totals in list(zip(self._groups, self._totals, strict=True))[
            :MAX_DETAILED
        ]:
            known = plans.get(statement, ())
            mark = mark_of(known, totals, totals.self_ns / database_ns)
            histogram = add_histograms(a.histogram for a in group)
            notes = [self._report.notes[statement]] if statement in self._report.notes else []
            if statement in first:
                notes += findings_at(first[statement], self._report, findings)
            found.append(
                {
                    "plan": [
                        [text(step), text(sign or None)] for step, sign in marked_steps(known, mark)
                    ],
                    "buckets": sorted(histogram),
                    "counts": [histogram[bucket] for bucket in sorted(histogram)],
                    "slowest": [
                        self._exemplar(one, start_ns) for one in exemplars.get(statement, ())
                    ],
                    "notes": [text(note) for note in notes],
                }
            )
        return found

    def _exemplar(self, one: Exemplar, start_ns: int) -> list[Any]:
        text = self._numbers.text_number
        stack = [self._numbers.site_number(frame) for frame in one.stack or one.path]
        return [
            one.duration_ns,
            max(0, one.started_unix_ns - start_ns),
            one.rows,
            text(one.span or None),
            stack,
            text(one.sql),
            text(one.parameters),
        ]

    def sources(self, source: SourceLines) -> dict[int, list[tuple[int, int]]]:
        """Return the source lines around each call site, by the site's number. A line is
        (line number, number of its text).
        """
        found: dict[int, list[tuple[int, int]]] = {}
        numbers = self._numbers.frames
        frames = dict.fromkeys(
            frame
            for _, group in self._groups[:MAX_DETAILED]
            for a in group
            if (frame := self._report.sites.site(a.path).frame) in numbers
        )
        for frame in list(frames)[:MAX_SOURCES]:
            lines = source(frame) if frame else None
            if frame and lines:
                shown = [(line, self._numbers.text_number(code)) for line, code in lines]
                found[numbers[frame]] = shown
        return found


def _figure_value(totals: Totals, name: str) -> Any:
    value = getattr(totals, name)
    return round(value, 3) if isinstance(value, float) else value
