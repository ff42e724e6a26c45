"""Strange names in the files that a test run writes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.dom import minidom

import pytest
from hypothesis import given
from report.test_hostile_names import CONTROL, FUZZED, NAMES, comparisons, profile_of

from queryprof.cli.compare import GATES
from queryprof.comparing.baseline_deviations import Deviation
from queryprof.comparing.baseline_figures import SiteFigures, StatementFigures
from queryprof.comparing.comparison import compare, regressions
from queryprof.errors import QueryprofError
from queryprof.model import (
    Cause,
    Distribution,
    Frame,
    Step,
)
from queryprof.report import inert
from queryprof.report.comparison.github import comparison_github
from queryprof.report.comparison.junit import comparison_junit
from queryprof.report.places import Places
from queryprof.report.text.failures import (
    ExceededLimit,
    limit_message,
    regression_message,
    stall_message,
)
from queryprof.testing.baseline_file import Baseline, read_baseline, write_baseline

pytestmark = pytest.mark.once


def unescaped(text: str) -> str:
    """Return the text that a runner reads from a part of a workflow command."""
    for escape, character in (("%3A", ":"), ("%2C", ","), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(escape, character)
    return text


@FUZZED
@given(NAMES)
def test_annotations_are_one_command_each(name: str) -> None:
    """A statement or file name cannot inject a command into the runner."""
    for comparison in comparisons(name):
        failed = regressions(comparison, GATES)
        text = comparison_github(failed, Places())
        assert not CONTROL.search(text)
        assert len(text.splitlines()) == len(failed)
        for line in text.splitlines():
            command = re.match(r"::error (file=([^,:]*),line=\d+,)?title=queryprof::(.*)", line)
            assert command, line
            assert command[2] is None or unescaped(command[2]) == inert.escape_control_characters(
                name
            )
            assert not CONTROL.search(unescaped(command[3]))
            assert "\n" not in unescaped(command[3])


@FUZZED
@given(NAMES)
def test_junit_is_xml(name: str) -> None:
    """This holds for any statement. The parser returns its visible form."""
    comparison = compare([profile_of("plain", 2)], [profile_of(name)])
    failed = regressions(comparison, GATES)
    document = minidom.parseString(comparison_junit(comparison, failed, Places()).encode())
    names = [case.getAttribute("name") for case in document.getElementsByTagName("testcase")]
    assert inert.escape_control_characters(name) in names or name.startswith("(")


@FUZZED
@given(NAMES)
def test_failures_of_tests_are_lines_of_their_own(name: str) -> None:
    """The output has no control character, and a name stays within one line."""
    frame = Frame(name, name, 3)
    figures = StatementFigures(3, 4, 5, 6, sites=(SiteFigures(frame, frame, 3),))
    before = StatementFigures(1, 4, 5, 6)
    cause = Cause(name, (frame,), 1, 9)
    step = Step(frame, Distribution(1, 10, 10), 9, 0, (cause,))
    messages = [
        regression_message([Deviation(name, before, figures, (name,))]),
        limit_message([ExceededLimit(name, {name: figures})]),
        stall_message("max_stall_ms=1", [step]),
    ]
    plain = [
        regression_message([Deviation("SELECT", before, figures, ("x",))]),
        limit_message([ExceededLimit("x", {"SELECT": figures}, "plans")]),
        stall_message("max_stall_ms=1", [step]),
    ]
    for message, other in zip(messages, plain, strict=True):
        assert not CONTROL.search(message)
        assert len(message.split("\n")) == len(other.split("\n"))
    was, now = replace(before, plans=((f"SEARCH {name}",),)), replace(figures, plans=((name,),))
    assert not CONTROL.search(regression_message([Deviation(name, was, now, (name,))]))


@FUZZED
@given(NAMES)
def test_a_baseline_keeps_any_name(name: str) -> None:
    """This includes half a character, which UTF-8 cannot encode."""
    tests = {name: {name: {"executions": 1, "rows": 0, "plans": [[name]]}}}
    write_baseline("b.json", Baseline("3", "3.12", tests))
    assert read_baseline("b.json").tests == tests


def test_a_damaged_baseline_is_one_line() -> None:
    """Invalid JSON gives no traceback."""
    for text in ("[" * 100_000, '{"format_version": ' + "9" * 5000 + "}"):
        Path("b.json").write_text(text)
        with pytest.raises(QueryprofError, match=r"^b\.json"):
            read_baseline("b.json")
