"""Limited trees, and unknown lines in JSON."""

from __future__ import annotations

import json

import pytest
from analysis.by_hand import aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.model import Frame
from queryprof.report.export.weights import OTHER, CallPathWeight, FunctionNode, limit_nodes
from queryprof.report.json.report import json_report

pytestmark = pytest.mark.once


def test_a_function_that_calls_itself_counts_once() -> None:
    f, g, read, write = (
        FunctionNode("a.py", line, name) for line, name in enumerate(("f", "g", "r", "w"))
    )
    weights = [CallPathWeight((f, f, read), 1, 10), CallPathWeight((g, write), 1, 15)]
    assert limit_nodes(weights, 2) == [CallPathWeight((OTHER,), 1, 10), weights[1]]


def test_an_unknown_line_is_none_in_json() -> None:
    frame = Frame("main", "/app/main.py", 0)
    text = "".join(json_report(Report(profile_of(aggregate("SELECT 1", (frame,))))))
    assert json.loads(text)
    assert '"line": null' in text
    assert '"line": 0' not in text
