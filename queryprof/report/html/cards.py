"""A report as cards below a notebook cell: plain HTML without scripts, links or files.

Notebooks show the cards with their own font and colours, light or dark. Headings, lists and text
remain readable where styles are removed, for example on GitHub or in an untrusted notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from xml.etree.ElementTree import Element, tostring

from queryprof.analysis.bottlenecks import Bottleneck
from queryprof.analysis.overview import completeness_sentence
from queryprof.analysis.report import Report
from queryprof.analysis.units import count, counted, duration, percent
from queryprof.findings.finding import Finding
from queryprof.findings.proved import statements_with_plan_findings
from queryprof.findings.unknown_causes import unknown_data_notes
from queryprof.model import Frame
from queryprof.report.findings.text import (
    category_title,
    combined_saving,
    detail_lines,
    no_findings_sentence,
    place_to_change,
    saving_in_words,
)
from queryprof.report.inert import escape_control_characters
from queryprof.report.places import Places
from queryprof.report.text.cards import figure_lines, findings_at, one_line_summary
from queryprof.report.text.loops import stall_description
from queryprof.report.text.plans import marked_steps

SourceLines = Callable[[Frame], Sequence[tuple[int, str]] | None]

FINDINGS, BOTTLENECKS, STALLS = 3, 5, 3
PLAN_LINES = 12
MAX_STATEMENT_CHARS = 2_000

CLASSES = "queryprof tex2jax_ignore mathjax_ignore"
"""CSS classes of the cards. tex2jax_ignore and mathjax_ignore stop notebooks from rendering dollar
signs as mathematics.
"""

NOT_ENDED = "The recorded block has not ended yet."


def summary_cards_html(
    report: Report | None,
    findings: Sequence[Finding] = (),
    source: SourceLines | None = None,
    compared: Sequence[str] = (),
    heading: str = "h4",
    ways: str = ": .dataframe(), .report(), .html(path)",
) -> str:
    """Return the HTML: findings, the vital few with their plans, and gaps in the recording.

    Args:
        report: None while the block still runs.
        source: returns the source lines around a frame; None to show no source.
        compared: one line for the comparison with each earlier recording.
        heading: HTML element of headings; notebooks use the higher levels.
        ways: text that lists the methods that show more; "" for no such text.
    """
    page = _Cards(report, findings, source, heading, ways) if report else None
    parts = page.parts(compared) if page else [_build_element("p", NOT_ENDED)]
    return tostring(
        _build_element("div", _style_element(), *parts, cls=CLASSES), "unicode", method="html"
    )


def _build_element(name: str, *inside: Element | str, cls: str = "") -> Element:
    """Build an element. Strings become text with escaped control characters."""
    made = Element(name, {"class": cls} if cls else {})
    last: Element | None = None
    for one in inside:
        if isinstance(one, Element):
            made.append(one)
            last = one
        elif last is None:
            made.text = (made.text or "") + escape_control_characters(one)
        else:
            last.tail = (last.tail or "") + escape_control_characters(one)
    return made


@cache
def _read_stylesheet() -> str:
    return files("queryprof.report.html").joinpath("page").joinpath("cards.css").read_text("utf-8")


def _style_element() -> Element:
    style = Element("style")
    style.text = _read_stylesheet()
    return style


def _code_block(lines: Iterable[tuple[str, bool]]) -> Element:
    """Return (text, is_bold) lines as an element in a fixed-width font."""
    made = Element("pre")
    for text, is_marked in lines:
        line = _build_element("b" if is_marked else "span", text)
        line.tail = "\n"
        made.append(line)
    return made


class _Cards:
    def __init__(
        self,
        report: Report,
        findings: Sequence[Finding],
        source: SourceLines | None,
        heading: str,
        ways: str,
    ) -> None:
        self._ways = ways
        self._report, self._findings, self._source = report, findings, source
        self._heading = heading
        self._places = Places(report.profile)

    def parts(self, compared: Sequence[str]) -> list[Element]:
        report, overview = self._report, self._report.overview
        found = [_build_element("p", _build_element("b", one_line_summary(overview)))]
        found += [_build_element("p", line, cls="compared") for line in compared]
        found += [
            _build_element("p", f"! {caution}", cls="caution") for caution in overview.cautions
        ]
        if overview.calls:
            found += self._what_to_do()
            found += self._vital_few()
        found += self._stalls()
        found += self._errors()
        if not overview.cautions:
            found.append(
                _build_element("p", completeness_sentence(report.overview.processes), cls="dim")
            )
        return found

    def _what_to_do(self) -> list[Element]:
        unknown = tuple(
            unknown_data_notes(self._report, statements_with_plan_findings(self._findings))
        )
        doubts = [_build_element("p", f"! {one}", cls="caution") for one in unknown]
        if not self._findings:
            return [_build_element("p", no_findings_sentence(unknown)), *doubts]
        found_fixes = [one for one in self._findings if not one.is_unexplained]
        if not found_fixes:
            return doubts
        more = len(self._findings) - min(FINDINGS, len(found_fixes))
        left = f" ({counted(more, 'more finding')}: .findings)" if more > 0 else ""
        found = [_build_element(self._heading, f"What to do{left}")]
        if line := combined_saving(self._findings):
            found.append(_build_element("p", f"{line}."))
        return [*found, *map(self._finding, found_fixes[:FINDINGS]), *doubts]

    def _finding(self, finding: Finding) -> Element:
        lines: list[Element] = [
            _build_element(
                "div",
                _build_element("b", category_title(finding)),
                " ",
                _build_element("span", f"({finding.severity})", cls=f"severity {finding.severity}"),
                f" {saving_in_words(finding)}",
            ),
            _build_element("div", place_to_change(finding, self._places)),
            *self._source_of(finding.site.frame),
        ]
        for kind, text in detail_lines(finding):
            if kind == "code":
                lines.append(_code_block((line, False) for line in text.splitlines()))
            else:
                lines.append(_build_element("div", "-> " * (kind == "fix") + text, cls=kind))
        return _build_element("div", *lines, cls="card")

    def _source_of(self, frame: Frame | None) -> list[Element]:
        """Return the frame's source line as code, or [] if the source is unknown."""
        around = self._source(frame) if self._source and frame else None
        return [
            _code_block([(f"{number}  {text.strip()}", False)])
            for number, text in around or ()
            if frame and number == frame.line
        ]

    def _vital_few(self) -> list[Element]:
        ranking = self._report.ranking
        shown = ranking.bottlenecks[: min(ranking.vital, BOTTLENECKS)]
        heading = (
            f"The vital few: {ranking.vital} of {ranking.count} statement and line pairs account"
            f" for {percent(ranking.vital_share)} of the database time"
        )
        found = [_build_element(self._heading, heading), *map(self._bottleneck, shown)]
        if ranking.count > len(shown):
            left = f"{ranking.count - len(shown)} more{self._ways}"
            found.append(_build_element("p", left, cls="dim"))
        return found

    def _bottleneck(self, one: Bottleneck) -> Element:
        totals = one.totals
        notes = [f"! {reason}" for reason in findings_at(one, self._report, self._findings)]
        if one.statement in self._report.notes:
            notes.insert(0, self._report.notes[one.statement])
        failed = f", {counted(totals.errors, 'error')}" if totals.errors else ""
        caller = "".join(f" <- {self._places.frame_text(frame)}" for frame, _ in one.callers[:1])
        text = one.statement[:MAX_STATEMENT_CHARS]
        cut = " ..." if len(one.statement) > MAX_STATEMENT_CHARS else ""
        return _build_element(
            "div",
            _build_element(
                "div",
                _build_element("b", f"{one.rank}. {percent(one.share)}"),
                f" {duration(totals.self_ns)}: {count(totals.executions)} x"
                f" {duration(totals.mean_ns)}{failed}",
            ),
            _build_element("div", self._places.site(one.site) + caller),
            *self._source_of(one.site.frame),
            _code_block([(text + cut, False)]),
            *(_build_element("div", note, cls="caution") for note in notes),
            *(_build_element("div", line, cls="figures") for line in figure_lines(one, notes)),
            *self._plan(one),
            cls="card",
        )

    def _plan(self, one: Bottleneck) -> list[Element]:
        steps = list(marked_steps(one.plans, one.mark))
        lines = [(f"{step}  ! {sign}" if sign else step, bool(sign)) for step, sign in steps]
        more = len(lines) - PLAN_LINES
        if more > 0:
            lines = [*lines[:PLAN_LINES], (f"... ({more} more lines)", False)]
        return [_build_element("div", "plan", cls="dim"), _code_block(lines)] if lines else []

    def _stalls(self) -> list[Element]:
        stalls = [stall for loop in self._report.loops for stall in loop.stalls]
        if not stalls:
            return []
        stalls.sort(key=lambda one: -one.stall.total_ns)
        found = [
            _build_element(
                self._heading, f"The event loop stalled ({counted(len(stalls), 'place')})"
            )
        ]
        return found + [
            _build_element("p", stall_description(one, self._places)) for one in stalls[:STALLS]
        ]

    def _errors(self) -> list[Element]:
        errors = self._report.errors
        if not errors:
            return []
        return [_build_element(self._heading, "Errors")] + [
            _build_element(
                "p", f"{count(one.count)} x {one.exception}: {self._places.site(one.site)}"
            )
            for one in errors[:BOTTLENECKS]
        ]
