"""Findings for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.units import counted
from queryprof.findings.finding import Finding, Severity
from queryprof.report.findings.text import (
    change_at,
    code_of_fix,
    combined_saving,
    details,
    gain,
    nothing_found,
    server_hint,
    title,
)
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, console_for, heading, write
from queryprof.report.terminal.sql import Sql

COLOURS = {Severity.HIGH: "bold red", Severity.MEDIUM: "bold yellow", Severity.LOW: "bold"}
STYLES = {"evidence": "", "fix": "green", "code": "cyan", "doubt": "dim"}
SHOWN = 3
LINE_PREFIXES = {"evidence": "", "fix": "-> ", "code": "   ", "doubt": ""}


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
        parts.append(Text(nothing_found(unknown)))
    for number, finding in enumerate(findings[:top], 1):
        parts.append(finding_card(number, finding, places, console.width))
    if len(findings) > top:
        parts.append(
            heading(f"{counted(len(findings) - top, 'more finding')}: --format json", "dim")
        )
    write(console, parts)


def what_to_do(
    findings: Sequence[Finding], places: Places, with_code: bool = False
) -> list[RenderableType]:
    """Return the first findings with a fix, for the first screen. Empty without such findings."""
    findings = [one for one in findings if not one.is_unexplained]
    if not findings:
        return []
    more = f" ({len(findings) - SHOWN} more: queryprof analyze)" if len(findings) > SHOWN else ""
    parts: list[RenderableType] = [heading(f"What to do{more}")]
    if line := combined_saving(findings):
        parts.append(Text(f"{line}."))
    if line := server_hint(findings):
        parts.append(Text(f"{line}.", "dim"))
    for number, finding in enumerate(findings[:SHOWN], 1):
        inside = [
            Text(change_at(finding, places), "bold cyan", overflow="fold"),
            Text(f"-> {finding.fix}", "green", overflow="fold"),
        ]
        if with_code:
            lines = "\n".join(code_of_fix(finding)).splitlines()
            inside += [Text(f"   {line}", STYLES["code"]) for line in lines]
        if finding.doubt:
            inside.append(Text(f"Not sure: {finding.doubt}", STYLES["doubt"], overflow="fold"))
        parts += [_heading_of(number, finding), Padding(Group(*inside), (0, 0, 0, 5))]
    return parts


def _heading_of(number: int, finding: Finding) -> RenderableType:
    return Group(
        Text.assemble((f"{number:>3}  ", "bold"), (title(finding), "bold")),
        Text.assemble(
            "     ", (str(finding.severity), COLOURS[finding.severity]), f", {gain(finding)}"
        ),
    )


def finding_card(number: int, finding: Finding, places: Places, width: int) -> RenderableType:
    """Return a card: title and place, statement, evidence, fix."""
    inside: list[RenderableType] = [Text(change_at(finding, places), "bold cyan", overflow="fold")]
    if finding.statement:
        inside.append(Sql(finding.statement, width - 7))
    inside += [
        Text(LINE_PREFIXES[kind] + line, STYLES[kind], overflow="fold")
        for kind, line in details(finding)
    ]
    inside.append(Text(finding.identity, "dim"))
    return Group(Text(""), _heading_of(number, finding), Padding(Group(*inside), (0, 0, 0, 5)))
