"""Reports as people see them: golden files to read in a review, and the machine formats.

After a wanted change: QUERYPROF_GOLDEN=write pytest tests/report/test_reports.py
"""

from __future__ import annotations

import io
import re
from dataclasses import replace

import jsonschema
import pytest
from analysis.by_hand import golden, json_of
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.report import Report
from queryprof.findings.finding import CATEGORIES, Finding, Severity
from queryprof.model import (
    Aggregate,
    Distribution,
    ErrorCount,
    Exemplar,
    Frame,
    Handoff,
    Interval,
    Plan,
    Process,
    Profile,
    Repeat,
    Span,
    StackSample,
    Thread,
    ThreadUsage,
    UsageInterval,
)
from queryprof.report.json.schema import document_schema
from queryprof.report.markdown_report import markdown_report
from queryprof.report.terminal.report import print_report, print_view
from queryprof.report.terminal.sql import MAX_CHARACTERS, SqlText

pytestmark = pytest.mark.once

HANDLER = Frame("Handler.get", "/srv/shop/views.py", 41)
LOOP = Frame("prices", "/srv/shop/models.py", 17)
MAIN = Frame("main", "/srv/shop/app.py", 88)
THREADS = (Thread(1, "MainThread"), Thread(1, "worker-1"))
ODD = "SELECT \"a|b\", `c` FROM [odd table] WHERE x = '' -- ` | <b> é 名"


def _aggregate(
    statement: str,
    path: tuple[Frame, ...],
    operation: str,
    count: int,
    ns: int,
    *,
    errors: int = 0,
    rows: int = 0,
    counters: tuple[int, ...] = (),
    thread: int = 0,
    span: str = "",
) -> Aggregate:
    fetches = operation in ("next", "fetchall", "fetchone")
    mean = ns // count
    return Aggregate(
        statement,
        path,
        span,
        THREADS[thread],
        operation,
        count,
        errors,
        rows,
        ns,
        ns,
        mean // 2,
        mean * 9,
        0 if fetches else mean * 9,
        0.0,
        *counters,
        histogram={} if fetches else {250: count - count // 20, 270: count // 20},
    )


@pytest.fixture
def profile() -> Profile:
    price = (
        "SELECT price, currency FROM price WHERE product_id = ? AND valid_from <= ? ORDER BY"
        " valid_from DESC LIMIT ?"
    )
    scan = (12000, 12000 * 28257, 12000 * 28256, 12000, 0, 4660, 750)
    process = Process(
        1,
        4711,
        1,
        "build",
        ("/usr/bin/python3", "app.py", "--port", "80 80"),
        "/srv/shop",
        "3.11.7",
        "3.40.1",
        "0.1.0",
        10**18,
        10**18 + 12_300_000_000,
        True,
        "time-stamp counter",
        False,
        None,
        27_700_000,
        0,
        0,
        0,
        0,
        5_000_000,
        70_000,
        0.5,
        None,
        0,
        (),
    )
    aggregates = (
        _aggregate(
            price,
            (LOOP, HANDLER, MAIN),
            "execute",
            12_000,
            5_020_000_000,
            counters=scan,
            span="GET /cart",
        ),
        _aggregate(
            price,
            (LOOP, HANDLER, MAIN),
            "fetchone",
            12_000,
            41_000_000,
            rows=11_988,
            span="GET /cart",
        ),
        _aggregate("COMMIT", (HANDLER, MAIN), "commit", 300, 540_000_000, thread=1),
        _aggregate("SELECT name FROM product", (MAIN,), "execute", 1, 90_000, thread=1),
        _aggregate(
            "SELECT name FROM product", (MAIN,), "next", 1201, 1_900_000, rows=1200, thread=1
        ),
        _aggregate(ODD, (), "execute", 2, 700_000, errors=2),
        _aggregate("(connect)", (MAIN,), "connect", 1, 120_000),
    )
    return Profile(
        (process,),
        aggregates,
        (ErrorCount(ODD, (), "execute", "sqlite3.OperationalError", 2),),
        (
            Exemplar(
                price,
                (LOOP,),
                "GET /cart",
                THREADS[0],
                "execute",
                10**18,
                44_000_000,
                1,
                (LOOP, HANDLER, MAIN),
                None,
                None,
            ),
        ),
        (StackSample(price, (LOOP, HANDLER, MAIN), 12_032, 5_000_000_000),),
        timeline_width_ns=1 << 27,
        timeline=(Interval(7450580596 << 27, 24_000, 11_988, 5_061_000_000),),
        plans=(
            Plan(price, "/srv/shop/shop.db", "SCAN TABLE price\nUSE TEMP B-TREE FOR ORDER BY\n"),
            Plan(price, ":memory:", "SEARCH price USING INDEX price_of (product=?)\n"),
        ),
        spans=(
            Span(
                "GET /cart",
                240,
                2,
                240,
                1_200_000_000,
                5_061_000_000,
                Distribution(240, 9_600_000_000, 90_000_000, {388: 230, 404: 10}),
                Distribution(240, 12_000, 80, {48: 228, 64: 12}),
                (Repeat(price, (LOOP, HANDLER, MAIN), 240, 12_000, 80),),
                {200: 238, 500: 2},
            ),
            Span(
                "import",
                1,
                0,
                0,
                0,
                540_000_000,
                Distribution(1, 600_000_000, 600_000_000, {432: 1}),
                Distribution(1, 0, 0, {0: 1}),
                (),
                {},
            ),
        ),
        handoffs=(
            Handoff(
                "aiosqlite",
                (HANDLER, MAIN),
                "",
                300,
                2,
                1,
                Distribution(299, 450_000_000, 9_000_000, {300: 250, 320: 49}),
                Distribution(299, 60_000_000, 500_000, {250: 299}),
                Distribution(298, 30_000_000, 300_000, {240: 298}),
                Distribution(299, 540_000_000, 9_800_000, {310: 299}),
            ),
        ),
        thread_usage=tuple(
            ThreadUsage(
                thread,
                3_200_000_000 // n,
                400_000_000 // n,
                5200,
                31,
                4_800_000,
                70_000 // n,
                9000,
                40,
                10**9,
                tuple(
                    UsageInterval(10**18 + i * 10**9, i * 50_000_000 // n, 400_000, 0)
                    for i in range(12)
                ),
            )
            for n, thread in enumerate(THREADS, 1)
        ),
        notes={"SELECT name FROM product": "lazy load of Order.products"},
    )


@pytest.mark.parametrize("width", [80, 160])
def test_the_report_in_a_terminal(profile: Profile, width: int) -> None:
    """The first screen shows what to fix, and no line is wider than the terminal."""
    text = io.StringIO()
    print_report(Report(profile), file=text, width=width)
    golden(f"report-{width}.txt", text.getvalue())
    assert max(map(len, text.getvalue().splitlines())) <= width
    assert "\x1b" not in text.getvalue()


@pytest.mark.parametrize("dimension", ["statement", "site", "operation", "thread", "span"])
@pytest.mark.parametrize("width", [80, 160])
def test_a_view_in_a_terminal(profile: Profile, dimension: str, width: int) -> None:
    """Each breakdown fits the width."""
    text = io.StringIO()
    print_view(Report(profile), dimension, file=text, width=width)
    golden(f"by-{dimension}-{width}.txt", text.getvalue())
    assert max(map(len, text.getvalue().splitlines())) <= width


def test_a_single_handoff_has_one_time(profile: Profile) -> None:
    (handoff,) = profile.handoffs
    text = io.StringIO()
    once = replace(profile, handoffs=(replace(handoff, count=1),))
    print_view(Report(once), "thread", file=text, width=160)
    assert "aiosqlite: 1 time, 1.81 ms, 2 errors" in text.getvalue()


def test_statements_of_one_line_stand_together(profile: Profile) -> None:
    """Each keeps its rank and its findings. The line appears once."""
    other = (replace(LOOP, line=99, function="other"), MAIN)
    aggregates = [
        _aggregate(sql, path, "execute", 10, ns)
        for sql, path, ns in (
            ("SELECT 1", (LOOP, MAIN), 5 * 10**9),
            ("SELECT 2", other, 4 * 10**9),
            ("SELECT 3", (LOOP, MAIN), 3 * 10**9),
        )
    ]
    report = Report(Profile(profile.processes, tuple(aggregates)))
    found = Finding(
        "full_scan",
        Severity.HIGH,
        0.3,
        3 * 10**9,
        "SELECT 3",
        CallSite(LOOP, (MAIN,)),
        None,
        (),
        "Create an index.",
        "",
        "",
    )
    text = io.StringIO()
    print_report(report, file=text, width=160, findings=[found])
    shown = text.getvalue().partition("The vital few")[2]
    assert re.findall(r"^  (\d)  ", shown, re.MULTILINE) == ["1", "3", "2"]
    assert shown.count("the same line") == 1
    assert f"SELECT 3\n     ! {CATEGORIES['full_scan'].title} (finding 1)\n" in shown


def test_a_statement_of_a_megabyte_is_cut_before_it_is_coloured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Colouring the whole text took 8 s."""
    coloured: list[int] = []
    highlight = Syntax.highlight

    def counted(self: Syntax, code: str) -> Text:
        coloured.append(len(code))
        return highlight(self, code)

    monkeypatch.setattr(Syntax, "highlight", counted)
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True, color_system="standard")
    for characters in (MAX_CHARACTERS, MAX_CHARACTERS + 1, 1_000_007):
        console.print(SqlText(("SELECT " + "(" * 10**6)[:characters], 80))
    assert coloured == [MAX_CHARACTERS] * 3
    assert f"({MAX_CHARACTERS:,} characters)" not in text.getvalue()
    assert f"({MAX_CHARACTERS + 1:,} characters)" in text.getvalue()
    assert "... (1,000,007 characters)" in text.getvalue()


def test_an_empty_profile(profile: Profile) -> None:
    """The report of a program without queries is one line."""
    known = profile.aggregates[3]._replace(count=0, rows=0, total_ns=0, self_ns=0, histogram={})
    for aggregates in ((), (known,)):  # ignored code may have left a name, but no call
        empty = Profile(profile.processes, aggregates)
        text = io.StringIO()
        print_report(Report(empty), file=text, width=80)
        print_view(Report(empty), "statement", file=text, width=80)
        assert text.getvalue().count("No database calls were recorded.") == 2
        assert "No database calls were recorded." in markdown_report(Report(empty))
        assert "|" not in markdown_report(Report(empty))
        document = json_of(Report(empty))
        assert document["cautions"] == ["No database calls were recorded."]
        assert (document["bottlenecks"], document["statements"]) == ([], 0)
        assert "(unknown)" not in text.getvalue() + markdown_report(Report(empty))


@pytest.mark.slow
def test_json_follows_its_schema(profile: Profile) -> None:
    """This includes an empty profile. Unknown values are null."""
    schema = document_schema("report")
    for each in (profile, Profile((), ()), Profile(profile.processes, ())):
        document = json_of(Report(each))
        jsonschema.validate(document, schema)
    document = json_of(Report(profile))
    first = document["bottlenecks"][0]
    assert first["totals"]["executions"] == 12_000
    assert first["site"]["frame"]["line"] == 17
    assert document["bottlenecks"][1]["totals"]["vm_steps"] is None
    assert len(json_of(Report(profile, top=1))["bottlenecks"]) == 1


def test_markdown_is_a_table_whatever_the_sql(profile: Profile) -> None:
    """Bars and backquotes in SQL do not break the table."""
    text = markdown_report(Report(profile))
    golden("report.md", text + "\n")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
