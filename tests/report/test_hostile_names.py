"""Names are data: every report works with any name of a span, thread, file or table, and shows the
name only as text.
"""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from analysis.by_hand import aggregate, json_of, process
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import queryprof as qp
from conftest import EXAMPLES
from queryprof.analysis.report import Report
from queryprof.comparing.comparison import compare
from queryprof.comparing.comparison_result import Comparison
from queryprof.model import (
    Cause,
    Distribution,
    ErrorCount,
    Frame,
    Handoff,
    Loop,
    Plan,
    Profile,
    Repeat,
    SlowSpan,
    Span,
    SpanRun,
    Stall,
    StallEvent,
    Step,
    Thread,
    ThreadUsage,
    UsageInterval,
)
from queryprof.report import inert
from queryprof.report.comparison.markdown import comparison_markdown
from queryprof.report.json.comparison import comparison_json
from queryprof.report.json.report import json_report
from queryprof.report.markdown_report import markdown_report
from queryprof.report.places import Places
from queryprof.report.terminal.comparison import print_comparison
from queryprof.report.terminal.loops import print_loops
from queryprof.report.terminal.report import print_report, print_view
from queryprof.report.terminal.slowest_spans import print_slowest_spans

pytestmark = pytest.mark.once

MOST = max(5, EXAMPLES // 40)
DIMENSIONS = ("statement", "site", "operation", "thread", "span")
CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
HOSTILE = (
    "\x1b[2J\x1b]0;title\x07",
    "[red]a[/red] [/b] [link=file:///x]y[/link] [@click=f]",
    ":smile:",
    "\u202egpj.py",
    "\u2067\u200e\u061c",
    "\x9b31m\x85",
    "\u2028\u2029\r\n\t\v\f",
    "\x00\x08\x7f",
    "a\n  99.9%  forged",
    "</td><script>alert(1)</script>",
    "<img src=x onerror=f()>",
    "| a | b |\n\n# head",
    "a\\|b",
    "``` `x` ``",
    "[text](javascript:f)",
    "=cmd|' /C f'!A0",
    "+1+1",
    "@SUM(1)",
    "-2+3",
    "-x",
    "\t=1",
    "\uff1d1",
    "::error file=x::evil",
    "\n::error::evil%0A",
    "]]><evil a='\"'/>&amp;",
    "\udcff\ud800",
    "\ufffe\uffff",
    "\u540d\u524d \xe9",
    "%s %(x)s {0} {x}",
    "a,b::c%0A%25",
    "a;=cmd|x;+1",
    "##[error]x ##[group]y",
    "aaaa|",
    "x\x7f",
)
NAMES = st.sampled_from(HOSTILE) | st.text(
    st.characters(exclude_categories=()) | st.sampled_from("[]/\\|<>`'\"=\x1b\x9b\n\u202e:@#&%"),
    min_size=1,
    max_size=40,
)


def profile_of(name: str, count: int = 20) -> Profile:
    """Return a profile in which everything that a program can name has this name."""
    frame = Frame(name, name, 7)
    path = (frame, Frame(f"caller{name}", f"/x/{name}", 3, name))
    times = Distribution(count, 10**9, 10**8, {300: count})
    cause = Cause(name, path, count, 10**9)
    thread = Thread(1, name)
    step = Step(frame, times, 10**9, 0, (cause,))
    stall = Stall(frame, path, path, count, 10**9, 10**9, 10**9, 0, 0, 0, 0, 3, 10**9, 3, (cause,))
    event = StallEvent(frame, path, path, 10**9, 10**8)
    loop = Loop(
        name, thread, True, 1, 10**10, 10**9, 50, 60, 4, times, times, (step,), (stall,), (event,)
    )
    run = SpanRun(name, path, name, thread, name, 10, 10**8, count, 10**7, 5)
    odd = aggregate(name, path, 10**9, name, count, name)._replace(thread=thread)
    return Profile(
        (process(argv=(name, name), directory=name, counters_off=name, host=name),),
        (odd, aggregate(name, path, 10**9, count=count, span=name)._replace(thread=thread)),
        (ErrorCount(name, path, name, name, 1),),
        plans=(Plan(name, name, f"SCAN {name}\nSEARCH {name} USING AUTOMATIC COVERING INDEX"),),
        loops=(loop,),
        spans=(
            Span(
                name,
                count,
                0,
                count,
                9,
                9,
                times,
                times,
                (Repeat(name, path, 1, 20, 20),),
                {200: count},
            ),
        ),
        slow_spans=(SlowSpan(name, thread, 10**9, 10**9, 10**8, count, False, 200, (run,)),) * 2,
        handoffs=(Handoff(name, path, name, count, 0, 0, times, times, times, times),),
        thread_usage=(
            ThreadUsage(thread, 9, 9, 1, 1, 1, 1, 1, 1, 10**9, (UsageInterval(0, 9, 1, 1),)),
        ),
        notes={name: name},
    )


SETTINGS = settings(
    max_examples=MOST,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def FUZZED(test: Callable[..., None]) -> Callable[..., None]:  # noqa: N802 as a decorator
    """Run a test of a name with every hostile name, and with some random ones."""
    for name in HOSTILE:
        test = example(name)(test)
    return SETTINGS(test)


def comparisons(name: str) -> Iterator[Comparison]:
    """Return comparisons: with a new and a gone statement, and with a plan that got worse."""
    yield compare([profile_of("plain", 2)], [profile_of(name)])
    plans = (Plan(name, name, f"SEARCH {name} USING INDEX i"),)
    yield compare([replace(profile_of(name, 2), plans=plans)], [profile_of(name)])


def printed(print_: Callable[..., None], *arguments: object, **options: object) -> str:
    text = io.StringIO()
    print_(*arguments, file=text, **options)
    return text.getvalue()


def terminal_reports(profile: Profile, before: Profile) -> Iterator[str]:
    yield printed(print_report, Report(profile), width=160)
    yield printed(print_report, Report(profile), width=80)
    yield printed(print_loops, Report(profile), width=80)
    yield printed(print_slowest_spans, Report(profile), width=80)
    yield printed(print_slowest_spans, Report(profile), width=160)
    for dimension in DIMENSIONS:
        yield printed(print_view, Report(profile), dimension, width=80)
    comparison = compare([before], [profile])
    yield printed(print_comparison, comparison, Places(profile, before), width=80)


@pytest.mark.slow
@FUZZED
@given(NAMES)
def test_a_terminal_shows_names_and_obeys_none(name: str) -> None:
    """The output has no control character, no markup, no line break and no style from a name."""
    before, after = profile_of("plain", 2), profile_of(name)
    for text in terminal_reports(after, before):
        assert not CONTROL.search(text), name
        assert "##[" not in text
    report = printed(print_report, Report(after), width=160)
    assert "\n  99.9%  forged" not in report


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.repeats
def test_colours_are_the_report_s_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the report's own escape sequences, no control character remains."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    for text in terminal_reports(profile_of(name), profile_of("plain", 2)):
        assert "\x1b[" in text
        assert not CONTROL.search(re.sub(r"\x1b\[[0-9;]*m", "", text))


def test_markup_is_shown_as_it_is() -> None:
    """Rich's markup and emoji codes appear as plain text."""
    name = "[red]a[/red] [/b] :smile:"
    for dimension in ("thread", "span", "statement"):
        assert name in printed(print_view, Report(profile_of(name)), dimension, width=160)


@FUZZED
@given(NAMES)
def test_json_is_exact(name: str) -> None:
    """Names are unchanged, and the text can be printed in any encoding."""
    for dimension in (None, *DIMENSIONS):
        text = "".join(json_report(Report(profile_of(name)), dimension))
        assert text.isascii()
        assert not CONTROL.search(text)
    document = json_of(Report(profile_of(name)))
    assert document["spans"][0]["name"] == name
    assert document["command"] == [name, name]
    comparison = compare([profile_of("plain", 2)], [profile_of(name)])
    statements = json.loads(comparison_json(comparison))["statements"]
    assert name in [change["statement"] for change in statements] or name.startswith("(")


def joined_rows_text(markdown: str) -> set[str]:
    """Return what a Markdown reader makes of the parts of the lines."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    parts = [part for token in parser.parse(markdown) for part in token.children or ()]
    return {part.content if part.type == "html_inline" else part.type for part in parts}


@FUZZED
@given(NAMES)
def test_markdown_is_a_table_without_html(name: str) -> None:
    """A name ends no cell and no row, and is no tag outside of code."""
    texts = [
        markdown_report(Report(profile_of(name)), dimension) for dimension in (None, *DIMENSIONS)
    ]
    places = Places(profile_of(name))
    for text in (*texts, *(comparison_markdown(found, places) for found in comparisons(name))):
        assert not CONTROL.search(text)
        assert joined_rows_text(text) <= {
            "text",
            "code_inline",
            "<code>",
            "</code>",
            "strong_open",
            "strong_close",
            "softbreak",
        }, text
        assert not re.search(r"<(?!/?code>)[/!?]|<(?!/?code>)[A-Za-z][^>]", text)
        for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
            cells = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table.splitlines()}
            assert len(cells) == 1, table


def record(path: str, name: str) -> None:
    """Record a program that uses a name wherever the database and Python accept it."""
    quoted = '"' + name.replace('"', '""') + '"'
    connection = sqlite3.connect(":memory:")
    code = "def f(connection, span):\n    with span: connection.execute('SELECT 2').fetchall()\n"
    space: dict[str, Callable[..., None]] = {}
    exec(compile(code, f"{name}.py", "exec"), space)
    with qp.profile(path):
        for sql in (f"CREATE TABLE {quoted} (a)", f"SELECT a FROM {quoted} ORDER BY a"):
            connection.execute(sql).fetchall()
        space["f"](connection, qp.span(name))
    connection.close()


RECORDED = [name for name in HOSTILE if not re.search("[\x00\ud800-\udfff]", name)]
"""Names without NUL and surrogates, which SQLite rejects."""


@pytest.mark.slow
def test_recorded_names_go_through_the_command_line(
    queryprof: Callable[..., object], tmp_path: Path
) -> None:
    """The trace has the names unchanged, and the command line prints them."""
    record("before.qprof", "plain")
    for number, name in enumerate(RECORDED):
        record(f"{number}.qprof", name)
    merged = ("merge", "x.qprof", *(f"{number}.qprof" for number in range(len(RECORDED))))
    commands = [merged, ("report", "x.qprof"), ("report", "--show", "loops", "x.qprof")]
    commands += [("report", "x.qprof", "--by", "span"), ("compare", "before.qprof", "x.qprof")]
    for command in commands:
        result = queryprof(*command)
        assert result.returncode in ((0, 1) if command[0] == "compare" else (0,)), result.stderr
        assert result.stderr == "", command
        assert not CONTROL.search(result.stdout), command
    spans = json.loads(queryprof("report", "x.qprof", "--format", "json").stdout)["spans"]
    assert {span["name"] for span in spans} == set(RECORDED)


@pytest.mark.parametrize("name", ["\x1b[2J\u202e.qprof", "a\nb.qprof", os.fsdecode(b"\xff\x9b")])
@pytest.mark.repeats
def test_errors_show_names_of_files(queryprof: Callable[..., object], name: str) -> None:
    """The error is one line, whatever the file's name is."""
    for command in (
        ("report", name),
        ("merge", name, name),
        ("run", name),
        ("lab", "scenario", name),
    ):
        result = queryprof(*command)
        assert (result.returncode, len(result.stderr.splitlines())) == (2, 1), result.stderr
        assert inert.escape_control_characters(name) in result.stderr
        assert not CONTROL.search(result.stderr)
    assert not CONTROL.search(queryprof("report", "x", "--by", name).stderr)
