"""Findings as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from queryprof.findings.finding import Finding
from queryprof.report.findings.text import (
    category_title,
    detail_lines,
    no_findings_sentence,
    place_to_change,
    saving_in_words,
)
from queryprof.report.inert import escape_markdown, inline_markdown_code
from queryprof.report.places import Places


def findings_markdown(findings: Sequence[Finding], places: Places, unknown: Sequence[str]) -> str:
    """Return one section per finding. `unknown` lists the reasons why findings may be missing."""
    if not findings:
        return "\n\n".join(
            [no_findings_sentence(unknown), *(f"! {escape_markdown(one)}" for one in unknown)]
        )
    return "\n\n".join(
        _finding_section(number, one, places) for number, one in enumerate(findings, 1)
    )


def _finding_section(number: int, finding: Finding, places: Places) -> str:
    lines = [
        f"### {number}. {escape_markdown(category_title(finding))}",
        (
            f"**{finding.severity}**, {escape_markdown(saving_in_words(finding))}:"
            f" {inline_markdown_code(place_to_change(finding, places))}"
        ),
    ]
    if finding.statement:
        lines.append(inline_markdown_code(finding.statement))
    lines.append(
        "\n".join(
            f"- {inline_markdown_code(line) if kind == 'code' else escape_markdown(line)}"
            for kind, line in detail_lines(finding)
        )
    )
    lines.append(f"`{finding.identity}`")
    return "\n\n".join(lines)
