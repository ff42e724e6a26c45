"""Findings as small JSON objects, for programs that read many of them, such as an agent.

Each text from the recorded program has its own field, so that readers cannot mistake the text for
queryprof's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from queryprof.findings.finding import Finding
from queryprof.report.findings.text import category_title, place_to_change, saving_in_words
from queryprof.report.inert import escape_control_characters
from queryprof.report.places import Places

MAX_CHARACTERS = 2000
"""Length limit of a finding as JSON (all ASCII)."""

FIELD_LIMITS = {
    "statement": 400,
    "fix": 400,
    "code": 300,
    "migration": 300,
    "place": 200,
    "doubt": 200,
    "parent": 120,
}
"""Length limit of each field in characters. Longer texts are cut and end in "..."."""

MAX_EVIDENCE, MAX_EVIDENCE_CHARACTERS = 4, 120


def brief_fields(finding: Finding, places: Places) -> Mapping[str, Any]:
    """Return a finding's fields. Empty fields are omitted."""
    texts = {
        "place": place_to_change(finding, places),
        "statement": finding.statement,
        "fix": finding.fix,
        "code": finding.code,
        "migration": finding.migration,
        "doubt": finding.doubt,
        "parent": finding.parent,
    }
    fields: dict[str, Any] = {
        "identity": finding.identity,
        "category": finding.category,
        "title": category_title(finding),
        "severity": str(finding.severity),
        "gain": saving_in_words(finding),
        **{name: shorten_text(text, FIELD_LIMITS[name]) for name, text in texts.items() if text},
        "evidence": [
            shorten_text(one, MAX_EVIDENCE_CHARACTERS) for one in finding.evidence[:MAX_EVIDENCE]
        ],
    }
    return shorten_fields(fields, MAX_CHARACTERS)


def shorten_fields(fields: dict[str, Any], max_characters: int) -> dict[str, Any]:
    """Shorten fields until their JSON has at most `max_characters` characters.

    Each step halves the longest field. A non-ASCII character counts as six.
    """
    while len(json.dumps(fields)) > max_characters:
        longest = max(fields, key=lambda name: len(json.dumps(fields[name])))
        value = fields[longest]
        if isinstance(value, list):
            fields[longest] = value[: len(value) // 2]
        else:
            fields[longest] = shorten_text(str(value), max(8, len(str(value)) // 2))
    return fields


def shorten_text(text: str, max_characters: int) -> str:
    """Escape control characters and cut the text to `max_characters`."""
    shown = escape_control_characters(text)
    return shown if len(shown) <= max_characters else shown[: max_characters - 3] + "..."


def brief_json(findings: Sequence[Finding], places: Places, cautions: Sequence[str]) -> str:
    """Return the findings as JSON, one per line, with cautions about their accuracy."""
    lines = ",\n  ".join(json.dumps(one) for one in brief_findings(findings, places))
    return f'{{"cautions": {json.dumps(list(cautions))},\n "findings": [\n  {lines}\n]}}'


def brief_findings(findings: Sequence[Finding], places: Places) -> list[Mapping[str, Any]]:
    """Return all findings as brief objects, largest saving first."""
    return [brief_fields(one, places) for one in findings]
