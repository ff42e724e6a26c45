"""A finding in a few plain fields, of a bounded size: for programs that read many of them, such as
an agent. Every text of the recorded program is data in a field of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from queryprof.analysis.findings.finding import Finding
from queryprof.report.findings.text import change_at, gain, title
from queryprof.report.inert import visible
from queryprof.report.places import Places

MOST_CHARACTERS = 2000
"""Of a finding as JSON, all of them ASCII."""

LONGEST = {
    "statement": 400,
    "fix": 400,
    "code": 300,
    "migration": 300,
    "place": 200,
    "doubt": 200,
    "parent": 120,
}
"""Characters of a field; a longer text ends in "..."."""

EVIDENCE, LONGEST_EVIDENCE = 4, 120


def brief(finding: Finding, places: Places) -> Mapping[str, Any]:
    """A finding's fields; those that say nothing are left out."""
    texts = {
        "place": change_at(finding, places),
        "statement": finding.statement,
        "fix": finding.fix,
        "code": finding.code,
        "migration": finding.migration,
        "doubt": finding.doubt,
        "parent": finding.parent,
    }
    made: dict[str, Any] = {
        "identity": finding.identity,
        "category": finding.category,
        "title": title(finding),
        "severity": str(finding.severity),
        "gain": gain(finding),
        **{name: shortened(text, LONGEST[name]) for name, text in texts.items() if text},
        "evidence": [shortened(one, LONGEST_EVIDENCE) for one in finding.evidence[:EVIDENCE]],
    }
    return bounded(made, MOST_CHARACTERS)


def bounded(made: dict[str, Any], most: int) -> dict[str, Any]:
    """Fields whose JSON has so many characters at the most: the longest texts are cut in half,
    until it does (a character of another alphabet is six there).
    """
    while len(json.dumps(made)) > most:
        longest = max(made, key=lambda name: len(json.dumps(made[name])))
        value = made[longest]
        if isinstance(value, list):
            made[longest] = value[: len(value) // 2]
        else:
            made[longest] = shortened(str(value), max(8, len(str(value)) // 2))
    return made


def shortened(text: str, most: int) -> str:
    """A text with control characters visible, cut to so many characters."""
    shown = visible(text)
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def brief_json(findings: Sequence[Finding], places: Places, cautions: Sequence[str]) -> str:
    """The findings as JSON, one on a line, and what a reader must know to believe them."""
    lines = ",\n  ".join(json.dumps(one) for one in briefs(findings, places))
    return f'{{"cautions": {json.dumps(list(cautions))},\n "findings": [\n  {lines}\n]}}'


def briefs(findings: Sequence[Finding], places: Places) -> list[Mapping[str, Any]]:
    """All findings, those that can win most first."""
    return [brief(one, places) for one in findings]
