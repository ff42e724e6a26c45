"""Findings as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from queryprof.findings.finding import Finding
from queryprof.report.findings.text import change_at, details, gain, nothing_found, title
from queryprof.report.inert import escape_markdown, markdown_code
from queryprof.report.places import Places


def findings_markdown(findings: Sequence[Finding], places: Places, unknown: Sequence[str]) -> str:
    """Return one section per finding. `unknown` lists the reasons why findings may be missing."""
    if not findings:
        return "\n\n".join(
            [nothing_found(unknown), *(f"! {escape_markdown(one)}" for one in unknown)]
        )
    return "\n\n".join(_section(number, one, places) for number, one in enumerate(findings, 1))


def _section(number: int, finding: Finding, places: Places) -> str:
    lines = [
        f"### {number}. {escape_markdown(title(finding))}",
        (
            f"**{finding.severity}**, {escape_markdown(gain(finding))}:"
            f" {markdown_code(change_at(finding, places))}"
        ),
    ]
    if finding.statement:
        lines.append(markdown_code(finding.statement))
    lines.append(
        "\n".join(
            f"- {markdown_code(line) if kind == 'code' else escape_markdown(line)}"
            for kind, line in details(finding)
        )
    )
    lines.append(f"`{finding.identity}`")
    return "\n\n".join(lines)
