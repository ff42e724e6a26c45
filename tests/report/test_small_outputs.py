"""Limited trees, stacks of the slowest executions, and unknown lines in JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from analysis.by_hand import aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.model import Exemplar, Frame, Thread
from queryprof.report.export.weights import OTHER, CallPathWeight, FunctionNode, limit_nodes
from queryprof.report.json.report import json_report
from queryprof.report.terminal.slowest import print_slowest

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


def test_the_program_is_in_the_stack_of_a_slow_execution() -> None:
    """A library has more frames than are shown, on both sides of the program's view."""
    library = [Frame(f"f{number}", "/venv/lib.py", number, "library") for number in range(1, 31)]
    stack = (*library[:10], Frame("view", "/app/views.py", 3), *library[10:])
    thread = Thread(1, "MainThread")
    slow = Exemplar("SELECT 1", stack[10:11], "", thread, "execute", 0, 10, 1, stack, None, None)
    profile = replace(profile_of(aggregate("SELECT 1")), exemplars=(slow,))
    text = io.StringIO()
    print_slowest(Report(profile), text, 100)
    lines = [line.strip() for line in text.getvalue().splitlines()[3:]]
    assert [line.partition(" ")[0] for line in lines] == [
        *(f"f{number}()" for number in range(1, 8)),
        "...",
        "view()",
        "...",
    ]
    assert [line for line in lines if line.startswith("...")] == [
        "... (3 more frames)",
        "... (20 more frames)",
    ]
