"""Findings for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.units import counted
from queryprof.findings.finding import Finding, Severity
from queryprof.report.findings.text import (
    category_title,
    combined_saving,
    detail_lines,
    fix_code,
    no_findings_sentence,
    place_to_change,
    saving_in_words,
    server_hint,
)
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, console_for, heading_line, print_parts
from queryprof.report.terminal.sql import SqlText

COLOURS = {Severity.HIGH: "bold red", Severity.MEDIUM: "bold yellow", Severity.LOW: "bold"}
STYLES = {"evidence": "", "fix": "green", "code": "cyan", "doubt": "dim"}
SHOWN = 3


def print_findings(
    findings: Sequence[Finding],
    places: Places,
    cautions: Iterable[str],
    unknown: Sequence[str],
    top: int,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print the findings, largest saving first. `unknown` lists causes that could not be
    checked.
    """
    console = console_for(file, width)
    parts: list[RenderableType] = [
        Text(f"! {caution}", style="yellow") for caution in (*cautions, *unknown)
    ]
    if not findings:
        parts.append(Text(no_findings_sentence(unknown)))
    for number, finding in enumerate(findings[:top], 1):
        parts.append(finding_card(number, finding, places, console.width))
    if len(findings) > top:
        parts.append(
            heading_line(f"{counted(len(findings) - top, 'more finding')}: --format json", "dim")
        )
    print_parts(console, parts)


def first_fixes(
    findings: Sequence[Finding], places: Places, with_code: bool = False
) -> list[RenderableType]:
    """Return the first findings that have a fix, for the first screen; [] if no finding has one.
    Their numbers are those of `queryprof analyze`.
    """
    numbered = [pair for pair in enumerate(findings, 1) if not pair[1].is_unexplained]
    if not numbered:
        return []
    shown, fixes = numbered[:SHOWN], [finding for _, finding in numbered]
    left = len(findings) - len(shown)
    more = f" ({left} more: queryprof analyze)" if left else ""
    parts: list[RenderableType] = [heading_line(f"What to do{more}")]
    if line := combined_saving(fixes):
        parts.append(Text(f"{line}."))
    if line := server_hint(fixes):
        parts.append(Text(f"{line}.", "dim"))
    for number, finding in shown:
        inside: list[RenderableType] = [
            Text(place_to_change(finding, places), "bold cyan", overflow="fold"),
            Text(f"-> {finding.fix}", "green", overflow="fold"),
        ]
        if with_code:
            lines = "\n".join(fix_code(finding)).splitlines()
            inside += [_detail_line("code", line) for line in lines]
        if finding.doubt:
            inside.append(Text(f"Not sure: {finding.doubt}", STYLES["doubt"], overflow="fold"))
        parts += [_finding_heading(number, finding), Padding(Group(*inside), (0, 0, 0, 5))]
    return parts


def _finding_heading(number: int, finding: Finding) -> RenderableType:
    return Group(
        Text.assemble((f"{number:>3}  ", "bold"), (category_title(finding), "bold")),
        Text.assemble(
            "     ",
            (str(finding.severity), COLOURS[finding.severity]),
            f", {saving_in_words(finding)}",
        ),
    )


def _detail_line(kind: str, line: str) -> RenderableType:
    text = Text("-> " * (kind == "fix") + line, STYLES[kind], overflow="fold")
    return Padding(text, (0, 0, 0, 3)) if kind == "code" else text


def finding_card(number: int, finding: Finding, places: Places, width: int) -> RenderableType:
    """Return a card: title and place, statement, evidence, fix."""
    inside: list[RenderableType] = [
        Text(place_to_change(finding, places), "bold cyan", overflow="fold")
    ]
    if finding.statement:
        inside.append(SqlText(finding.statement, width - 7))
    inside += [_detail_line(kind, line) for kind, line in detail_lines(finding)]
    inside.append(Text(finding.identity, "dim"))
    return Group(Text(""), _finding_heading(number, finding), Padding(Group(*inside), (0, 0, 0, 5)))
