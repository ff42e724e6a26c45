"""A comparison as JSON, with units in the names (comparison-schema.json documents it)."""

from __future__ import annotations

from typing import Any

from queryprof.analysis.comparison import Change, Comparison, SiteChange, StatementChange
from queryprof.report.inert import json_text

FORMAT_VERSION = 1


def comparison_json(comparison: Comparison) -> str:
    """The comparison as a JSON document."""
    document = {
        "format_version": FORMAT_VERSION,
        "before_runs": comparison.before_runs,
        "after_runs": comparison.after_runs,
        "same_sqlite": comparison.same_sqlite,
        "whole": [_change(change) for change in comparison.whole],
        "statements": [_statement(change) for change in comparison.statements],
    }
    return json_text(document, indent=2)


def _change(change: Change) -> dict[str, Any]:
    return {
        "metric": change.metric,
        "gate": change.gate,
        "before": change.before,
        "after": change.after,
        "ratio": change.ratio,
        "interval": list(change.interval) if change.interval else None,
        "verdict": str(change.verdict),
    }


def _statement(change: StatementChange) -> dict[str, Any]:
    return {
        "statement": change.statement,
        "kind": change.kind,
        "verdict": str(change.verdict),
        "changes": [_change(c) for c in change.changes],
        "call_sites": [_site(site) for site in change.sites],
        "plans": {
            "before": [list(plan) for plan in change.plans.before],
            "after": [list(plan) for plan in change.plans.after],
            "verdict": str(change.plans.verdict),
        },
    }


def _site(change: SiteChange) -> dict[str, Any]:
    frame = change.site.frame
    return {
        "function": frame.function if frame else None,
        "file": frame.file if frame else None,
        "line": (frame.line or None) if frame else None,
        "executions_before": change.before,
        "executions_after": change.after,
    }
