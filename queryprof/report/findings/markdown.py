"""Findings as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from queryprof.analysis.findings.finding import Finding
from queryprof.report.findings.text import NOTHING, change_at, details, gain, title
from queryprof.report.inert import markdown, markdown_code
from queryprof.report.places import Places


def findings_markdown(findings: Sequence[Finding], places: Places) -> str:
    """A section for each finding."""
    if not findings:
        return NOTHING
    return "\n\n".join(_section(number, one, places) for number, one in enumerate(findings, 1))


def _section(number: int, finding: Finding, places: Places) -> str:
    lines = [
        f"### {number}. {markdown(title(finding))}",
        f"**{finding.severity}**, {markdown(gain(finding))}: {markdown_code(change_at(finding, places))}",
    ]
    if finding.statement:
        lines.append(markdown_code(finding.statement))
    lines.append(
        "\n".join(
            f"- {markdown_code(line) if kind == 'code' else markdown(line)}"
            for kind, line in details(finding)
        )
    )
    lines.append(f"`{finding.identity}`")
    return "\n\n".join(lines)
