"""Findings as annotations of a pull request, in GitHub's workflow commands."""

from __future__ import annotations

from collections.abc import Sequence

from queryprof.findings.finding import Finding, Severity
from queryprof.report.findings.text import one_paragraph_message
from queryprof.report.inert import escape_github_message, escape_github_property
from queryprof.report.places import Places

COMMANDS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "notice"}


def findings_github(findings: Sequence[Finding], places: Places) -> str:
    """Return one annotation per finding, at its line."""
    return "\n".join(_annotation(finding, places) for finding in findings)


def _annotation(finding: Finding, places: Places) -> str:
    frame = finding.site.frame
    place = ""
    if frame:
        line = f"line={frame.line}," if frame.line else ""
        place = f"file={escape_github_property(places.file(frame.file))},{line}"
    name = escape_github_property(finding.category)
    return (
        f"::{COMMANDS[finding.severity]} {place}title=queryprof"
        f" {name}::{escape_github_message(one_paragraph_message(finding))}"
    )
