"""Findings as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), for code scanning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from queryprof.analysis.call_sites import CallSite
from queryprof.findings.finding import CATEGORIES, Finding, Severity
from queryprof.report.findings.text import one_paragraph_message
from queryprof.report.inert import escape_control_characters, serialize_json
from queryprof.report.places import Places
from queryprof.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}
RANKS = {Severity.HIGH: 90.0, Severity.MEDIUM: 50.0, Severity.LOW: 10.0}


def findings_sarif(findings: Sequence[Finding], places: Places) -> str:
    """Return the findings as a SARIF log with one run."""
    names = list(CATEGORIES)
    rules = [
        {
            "id": name,
            "shortDescription": {"text": one.title},
            "fullDescription": {"text": one.meaning},
        }
        for name, one in CATEGORIES.items()
    ]
    driver = {"name": "queryprof", "semanticVersion": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(finding, places, names) for finding in findings],
    }
    return serialize_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_result(finding: Finding, places: Places, names: list[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.category,
        "ruleIndex": names.index(finding.category),
        "level": LEVELS[finding.severity],
        "rank": RANKS[finding.severity],
        "message": {"text": escape_control_characters(one_paragraph_message(finding))},
        "partialFingerprints": {"queryprof/v1": finding.identity},
        "properties": {"statement": finding.statement, "gain_ns": finding.gain_ns},
    }
    if location := _sarif_location(finding.site, places):
        result["locations"] = [location]
    if finding.loop and (location := _sarif_location(finding.loop, places)):
        result["relatedLocations"] = [{**location, "message": {"text": "the loop"}}]
    return result


def _sarif_location(site: CallSite, places: Places) -> dict[str, Any] | None:
    frame = site.frame
    if not frame or not frame.file:
        return None
    file = places.file(frame.file)
    uri = PurePath(file).as_uri() if PurePath(file).is_absolute() else quote(file)
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if frame.line:
        physical["region"] = {"startLine": frame.line}
    return {
        "physicalLocation": physical,
        "logicalLocations": [{"fullyQualifiedName": frame.function, "kind": "function"}],
    }
