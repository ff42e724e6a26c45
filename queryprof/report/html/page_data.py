"""The page's data: columns and one table of strings, which keeps large reports small.

All figures come from the Report, as in every other format. A text is an index into `strings`, a
call site an index into `sites`, a statement an index into `statements`. -1 means none.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from queryprof.analysis.bottlenecks import Bottleneck
from queryprof.analysis.call_sites import place_of
from queryprof.analysis.lock_holders import sum_holds
from queryprof.analysis.loops import LoopSummary, cumulative_shares
from queryprof.analysis.overview import completeness_sentence
from queryprof.analysis.report import Report
from queryprof.analysis.spans import SpanSummary
from queryprof.analysis.timeline import timeline_of
from queryprof.analysis.totals import groups_with_calls, self_ns_of
from queryprof.analysis.tree import Node, call_tree
from queryprof.analysis.units import counted, duration, percent
from queryprof.findings.finding import Finding
from queryprof.findings.proved import statements_with_plan_findings
from queryprof.findings.unknown_causes import unknown_data_notes
from queryprof.model import Distribution, Frame, LockHold, Process
from queryprof.model.advice import Advice
from queryprof.report.findings.text import (
    category_title,
    combined_saving,
    detail_lines,
    headline,
    no_findings_sentence,
    place_to_change,
    saving_in_words,
)
from queryprof.report.html.numbers import TextNumbers
from queryprof.report.html.page_advice import advice_data
from queryprof.report.html.page_places import PagePlaces
from queryprof.report.html.page_spans import PageSpans
from queryprof.report.html.page_statements import PageStatements, SourceLines
from queryprof.report.html.page_tree import tree_columns
from queryprof.report.text.deployment import deployment_names, deployments_in_words
from queryprof.report.text.spans import NOT_RECORDED
from queryprof.version import __version__

PARETO_ROWS = 20
NOTABLE_SHARE = 0.01
INTERVALS = 120
MAX_NAMES = 3
MAX_SPANS = MAX_LOCKS = MAX_ERRORS = MAX_STALLS = 50
MAX_PROCESSES = 200


@dataclass(frozen=True, slots=True)
class _BeforeTimes:
    """Times in another recording: by statement, by call site and by node of the call tree."""

    statements: Mapping[str, int]
    places: Mapping[tuple[str, str, str], int]
    tree: Node


def page_data(
    report: Report,
    findings: Sequence[Finding],
    source: SourceLines | None,
    before: Report | None = None,
    functions: Node | None = None,
    advice: Advice | None = None,
) -> dict[str, Any]:
    """Return the data of a report's page.

    Args:
        findings: largest saving first.
        source: returns the source lines around a frame; None to show no source.
        before: another recording to compare with.
        functions: tree of the functions' times; None if unknown.
        advice: changes proved on a copy of the database; None without --prove.
    """
    page = _PageDataBuilder(report, findings, source, before)
    data = page.data()
    others = {"advice": page.advice(advice), "functions": page.functions(functions)}
    return {**data, **others, **page.texts()}


class _PageDataBuilder:
    def __init__(
        self,
        report: Report,
        findings: Sequence[Finding],
        source: SourceLines | None,
        before: Report | None,
    ) -> None:
        self._report, self._findings, self._source = report, findings, source
        self._places = PagePlaces(report.profile)
        self._before = _before_times(before) if before else None
        groups = groups_with_calls(report.profile.aggregates, lambda a: a.statement)
        groups.sort(key=lambda item: (-self_ns_of(item[1]), item[0]))
        self._numbers = TextNumbers(self._places, (statement for statement, _ in groups))
        was_ns = self._before.statements if self._before else None
        self._spans = PageSpans(report, self._numbers)
        self._statements = PageStatements(report, groups, self._numbers, was_ns)

    def data(self) -> dict[str, Any]:
        report, overview, ranking = self._report, self._report.overview, self._report.ranking
        names = (
            "run_ns",
            "process_ns",
            "database_ns",
            "database_share",
            "executions",
            "statements",
            "errors",
            "rows",
            "profiler_ns",
            "processes",
        )
        unknown = tuple(unknown_data_notes(report, statements_with_plan_findings(self._findings)))
        found = {
            "facts": {
                **{name: getattr(overview, name) for name in names},
                "command": self._numbers.text_number(self._places.command_line(overview.command)),
                "started": self._numbers.text_number(_start_time_utc(report.profile.processes)),
                "databases": self._numbers.text_number(self._databases()),
                "names": self._numbers.text_number(
                    deployments_in_words(map(deployment_names, report.profile.processes))
                ),
                "vital": ranking.vital,
                "vital_share": ranking.vital_share,
                "places": ranking.count if overview.calls else 0,
            },
            "cautions": [self._numbers.text_number(caution) for caution in overview.cautions],
            "complete": completeness_sentence(report.overview.processes),
            "timeline": self._timeline(),
            "pareto": self._pareto_rows(self._notable_bottlenecks()),
            "findings": [self._finding(finding) for finding in self._findings],
            "nothing": [
                self._numbers.text_number(line)
                for line in (no_findings_sentence(unknown), *(f"! {one}" for one in unknown))
            ],
            "headline": self._headline_texts(),
            "spans": [self._span(each) for each in report.spans[:MAX_SPANS]],
            "repeats": [
                {
                    "each": one.each,
                    "spans": one.spans,
                    "most": one.most,
                    "span": self._numbers.text_number(one.span),
                    **self._numbers.number_and_text(one.statement),
                    "site": self._numbers.site_number(one.site.frame),
                }
                for one in report.repeats[:MAX_SPANS]
            ],
            "slowest": self._spans.slowest(),
            "not_recorded": NOT_RECORDED,
            "loops": [self._loop(loop) for loop in report.loops],
            "locks": self._locks(),
            "tree": tree_columns(
                call_tree(report.profile.aggregates),
                self._before.tree if self._before else None,
                self._numbers,
                self._places,
            ),
            "errors": self._errors(),
            "statements": self._statements.columns(),
            "details": self._statements.details(self._findings),
            "processes": [self._process(one) for one in report.profile.processes[:MAX_PROCESSES]],
        }
        found["source"] = self._statements.sources(self._source) if self._source else {}
        found["footer"] = self._footer()
        return found

    def functions(self, root: Node | None) -> dict[str, Any] | None:
        """Return the tree of the functions' times."""
        return tree_columns(root, None, self._numbers, self._places) if root else None

    def advice(self, advice: Advice | None) -> dict[str, Any] | None:
        """Return the changes that were proved on a copy of the database."""
        return advice_data(advice, self._numbers) if advice else None

    def texts(self) -> dict[str, Any]:
        """Return the texts and sites that the rest of the data refers to. Call this last."""
        return self._numbers.columns()

    def _notable_bottlenecks(self) -> Sequence[Bottleneck]:
        """Return the vital few, and other bottlenecks above NOTABLE_SHARE, up to PARETO_ROWS."""
        ranking = self._report.ranking
        notable = sum(one.share >= NOTABLE_SHARE for one in ranking.bottlenecks)
        return ranking.bottlenecks[: min(max(ranking.vital, notable), PARETO_ROWS)]

    def _headline_texts(self) -> list[int]:
        """Return one line for the first finding and one for the combined saving."""
        lines = [headline(one, self._places) for one in self._findings[:1]]
        lines += filter(None, [combined_saving(self._findings)])
        return [self._numbers.text_number(line) for line in lines]

    def _databases(self) -> str:
        """Return the names of up to MAX_NAMES database files."""
        databases = self._report.profile.databases
        names = sorted({os.path.basename(one) or one for one in databases})
        more = len(names) - MAX_NAMES
        return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")

    def _timeline(self) -> dict[str, Any]:
        timeline = timeline_of(self._report.profile, INTERVALS)
        return {
            "width_ns": timeline.width_ns,
            "start": [one.start_ns for one in timeline.moments],
            "calls": [round(one.calls_per_s) for one in timeline.moments],
            "busy": [round(one.busy, 4) for one in timeline.moments],
        }

    def _pareto_rows(self, bottlenecks: Sequence[Bottleneck]) -> dict[str, Any]:
        found: dict[str, Any] = {
            "statement": [self._numbers.statement_number(one.statement) for one in bottlenecks],
            "site": [self._numbers.site_number(one.site.frame) for one in bottlenecks],
            "self_ns": [one.totals.self_ns for one in bottlenecks],
            "share": [one.share for one in bottlenecks],
            "cumulative": [min(one.cumulative_share, 1.0) for one in bottlenecks],
        }
        if self._before:
            found["before_ns"] = [
                self._before.places.get(_place_key(one.statement, one.site.frame, self._places))
                for one in bottlenecks
            ]
        return found

    def _finding(self, finding: Finding) -> dict[str, Any]:
        return {
            "severity": str(finding.severity),
            "title": self._numbers.text_number(category_title(finding)),
            "gain": self._numbers.text_number(saving_in_words(finding)),
            **self._numbers.number_and_text(finding.statement),
            "place": self._numbers.text_number(place_to_change(finding, self._places)),
            "lines": [
                [kind, self._numbers.text_number(line)] for kind, line in detail_lines(finding)
            ],
        }

    def _span(self, found: SpanSummary) -> dict[str, Any]:
        return {
            "name": self._numbers.text_number(found.span.name),
            "count": found.span.count,
            "mean_ns": found.wall.mean_ns,
            "p95_ns": found.wall.p95_ns,
            "max_ns": found.wall.max_ns,
            "database_share": found.database_share,
            "queries_mean": found.queries.mean_ns,
            "queries_max": found.queries.max_ns,
            "errors": found.span.errors,
        }

    def _loop(self, found: LoopSummary) -> dict[str, Any]:
        loop = found.loop
        busy = "" if found.utilization is None else f", busy {percent(found.utilization)} of it"
        return {
            "title": self._numbers.text_number(
                f"{loop.kind} in {loop.thread.name}: ran {duration(loop.run_ns)}{busy},"
                f" blocked {counted(sum(one.stall.count for one in found.stalls), 'time')}"
            ),
            "timer": _curve_columns(loop.timer_lag),
            "beat": _curve_columns(loop.beat_lag),
            "events": self._spans.stalls(loop),
            "stalls": [
                {
                    "site": self._numbers.site_number(one.site.frame or one.stall.function),
                    **self._numbers.number_and_text(one.causes[0].statement if one.causes else ""),
                    "count": one.stall.count,
                    "max_ns": one.stall.max_ns,
                    "total_ns": one.stall.total_ns,
                    "delay_ns": one.delay_ns,
                    "database_share": one.stall.database_ns / (one.stall.total_ns or 1),
                }
                for one in found.stalls[:MAX_STALLS]
            ],
        }

    def _locks(self) -> list[dict[str, Any]]:
        """Return the lock holds, summed over threads, spans and end statements."""
        found: dict[tuple[object, ...], list[LockHold]] = defaultdict(list)
        for hold in self._report.lock_holds:
            place = place_of(self._report.sites.site(hold.path).frame)
            found[hold.statement, hold.kind, hold.database, place].append(hold)
        sums = [sum_holds(holds, holds[0]) for holds in found.values()]
        sums.sort(key=lambda hold: -hold.total_ns)
        return [
            {
                **self._numbers.number_and_text(hold.statement),
                "kind": hold.kind,
                "count": hold.count,
                "site": self._numbers.site_number(self._report.sites.site(hold.path).frame),
                "database": self._numbers.text_number(
                    os.path.basename(hold.database) or hold.database
                ),
                "total_ns": hold.total_ns,
                "max_ns": hold.max_ns,
                "changed_rows": hold.changed_rows,
            }
            for hold in sums[:MAX_LOCKS]
        ]

    def _errors(self) -> list[dict[str, Any]]:
        return [
            {
                "exception": self._numbers.text_number(error.exception),
                **self._numbers.number_and_text(error.statement),
                "site": self._numbers.site_number(error.site.frame),
                "count": error.count,
            }
            for error in self._report.errors[:MAX_ERRORS]
        ]

    def _process(self, process: Process) -> dict[str, Any]:
        command = f"{process.pid}  {self._places.command_line(process.argv)}"
        return {
            "command": self._numbers.text_number(command),
            "wall_ns": process.wall_ns,
            "python": self._numbers.text_number(process.python_version),
            "sqlite": self._numbers.text_number(process.sqlite_version or "not used"),
            "clock": self._numbers.text_number(process.clock),
        }

    def _footer(self) -> list[int]:
        lines = [
            f"queryprof {__version__}. This file is complete: it loads nothing from the network."
        ]
        if self._source is not None:
            lines.append("It holds lines of the program's source (--no-source leaves them out).")
        if any(one.parameters is not None for one in self._report.profile.exemplars):
            lines.append("It holds values of parameters, which may be secrets.")
        return [self._numbers.text_number(line) for line in lines]


def _start_time_utc(processes: Sequence[Process]) -> str:
    """Return when the first process began, in UTC; "" without processes."""
    begun = min((one.recorded_unix_ns for one in processes), default=0) / 1e9
    return datetime.fromtimestamp(begun, UTC).strftime("%Y-%m-%d %H:%M UTC") if begun else ""


def _curve_columns(distribution: Distribution) -> tuple[list[int], list[float]]:
    points = list(cumulative_shares(distribution))
    return [ns for ns, _ in points], [round(share, 5) for _, share in points]


def _place_key(statement: str, frame: Frame | None, places: PagePlaces) -> tuple[str, str, str]:
    """Return a key for a statement at a call site that also matches other recordings.

    It has no line number, because lines move.
    """
    return statement, frame.function if frame else "", places.file(frame.file) if frame else ""


def _before_times(report: Report) -> _BeforeTimes:
    groups = groups_with_calls(report.profile.aggregates, lambda a: a.statement)
    own_places = PagePlaces(report.profile)
    by_place: dict[tuple[str, str, str], int] = {}
    for (statement, place), ns in report.spent_ns.items():
        frame = Frame(place[1], place[0], place[2]) if place else None
        key = _place_key(statement, frame, own_places)
        by_place[key] = by_place.get(key, 0) + ns
    return _BeforeTimes(
        {statement: self_ns_of(group) for statement, group in groups},
        by_place,
        call_tree(report.profile.aggregates),
    )
