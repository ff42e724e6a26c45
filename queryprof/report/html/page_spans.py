"""Page data of the slowest spans, call by call, and of an event loop's stalls."""

from __future__ import annotations

from typing import Any

from queryprof.analysis.delays import Delays
from queryprof.analysis.report import Report
from queryprof.model import Loop, SlowSpan
from queryprof.report.html.numbers import TextNumbers
from queryprof.report.places import Places
from queryprof.report.text.spans import delay_in_words, no_calls_sentence, run_statement

SHOWN = 30
"""Maximum number of slowest spans on a page."""


class PageSpans:
    """Single spans and stalls of the page. Times count from the start of the recording."""

    def __init__(self, report: Report, numbers: TextNumbers) -> None:
        self._report, self._numbers = report, numbers
        self._delays, self._places = Delays(report.profile), Places(report.profile)
        starts = [process.recorded_unix_ns for process in report.profile.processes]
        self._start_unix_ns = min(starts, default=0)

    def slowest(self) -> list[dict[str, Any]]:
        return [self._span(one) for one in self._report.slowest_spans[:SHOWN]]

    def stalls(self, loop: Loop) -> dict[str, Any]:
        """Return the longest stalls of a loop as columns."""
        events = loop.stall_events
        sites = self._report.sites
        return {
            "start": [one.started_unix_ns - self._start_unix_ns for one in events],
            "duration_ns": [one.duration_ns for one in events],
            "site": [
                self._numbers.site_number(sites.site(one.path).frame if one.path else one.function)
                for one in events
            ],
        }

    def _span(self, one: SlowSpan) -> dict[str, Any]:
        mentions = [self._numbers.number_and_text(run_statement(run)) for run in one.runs]
        return {
            "name": self._numbers.text_number(one.name),
            "start": one.started_unix_ns - self._start_unix_ns,
            "duration_ns": one.duration_ns,
            "database_ns": one.database_ns,
            "executions": one.executions,
            "failed": one.failed,
            "status": one.status,
            "why": [
                self._numbers.text_number(delay_in_words(delay, self._places))
                for delay in self._delays.delays_of_span(one)
            ],
            "without_runs": self._numbers.text_number(None if one.runs else no_calls_sentence(one)),
            "runs": {
                "statement": [each["statement"] for each in mentions],
                "text": [each["text"] for each in mentions],
                "site": [
                    self._numbers.site_number(self._report.sites.site(run.path).frame)
                    for run in one.runs
                ],
                **{
                    name: [getattr(run, name) for run in one.runs]
                    for name in ("start_ns", "end_ns", "executions", "self_ns", "rows")
                },
            },
        }
