"""One of several causes is reported, with its time, on profiles made by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.library_frames import frames_outside_request
from queryprof.analysis.plans import Steps
from queryprof.analysis.report import Report
from queryprof.analysis.units import rows_in_words
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding
from queryprof.findings.merging import are_similar_statements, merge_same_cause
from queryprof.findings.subqueries import EXISTING
from queryprof.findings.unknown_causes import unknown_data_notes
from queryprof.model import FileWork, Frame, Plan, Profile, Schema, StackSample
from queryprof.model.schema import Index
from queryprof.planner.facts import IndexHelp, NoPlanner, Planner
from queryprof.program.database_schema import read_schema

pytestmark = pytest.mark.once

MS = 1_000_000
SITE = (QUERY, MAIN)
READ = "SELECT a FROM t WHERE b > ? ORDER BY c"
SORTS: Steps = ("SEARCH t USING INDEX t_b (b>?)", "USE TEMP B-TREE FOR ORDER BY")


class Knows(NoPlanner):
    """A planner that always gives the same answer."""

    def __init__(self, served: IndexHelp, tables: frozenset[str] = frozenset()) -> None:
        self._served, self._tables = served, tables

    def index_help(self, statement: str, plans: Sequence[Steps]) -> IndexHelp:
        return self._served

    def tables(self, statement: str) -> frozenset[str]:
        return self._tables

    def statistics_mislead(self, statement: str, plans: Sequence[Steps]) -> bool:
        return False


def findings(
    profile: Profile, planner: Planner, schemas: Sequence[Schema] = (), *, is_loop: bool = True
) -> tuple[Finding, ...]:
    def loop(frame: Frame, _: str) -> Frame | None:
        return replace(frame, line=1) if is_loop else None

    return find_all(Report(profile), loop, {one.file: one for one in schemas}, planner)


def scan(waited_ns: int = 0) -> Profile:
    """Return 50 executions of 6 ms that scan the table."""
    one = aggregate(READ, SITE, ns=300 * MS, count=50)._replace(
        rows=50, vm_steps=50 * 20_000, full_scan_steps=50 * 1000
    )
    work = FileWork(
        READ, SITE, "", one.thread, "execute", 50, 5, waited_ns, waited_ns // 5, 0, 0, 0, 0, 0, 0
    )
    return replace(
        profile_of(one),
        plans=(Plan(READ, "app.db", "SCAN t"),),
        file_work=(work,) if waited_ns else (),
    )


INDEX = IndexHelp(("SCAN t",), code="CREATE INDEX t_b ON t (b);", terms=("b",))


@pytest.mark.parametrize(("waited_ms", "gain_ms"), [(0, 282), (150, 141)])
def test_waiting_for_a_lock_is_no_work(waited_ms: int, gain_ms: int) -> None:
    (found,) = (
        one for one in findings(scan(waited_ms * MS), Knows(INDEX)) if one.category == "full_scan"
    )
    assert found.gain_ns == pytest.approx(gain_ms * MS, rel=0.01)


@pytest.mark.parametrize(
    ("plan", "sorts_less", "category"),
    [
        (("SCAN t", "USE TEMP B-TREE FOR ORDER BY"), True, "temp_btree_sort"),
        (("SCAN t", "USE TEMP B-TREE FOR ORDER BY"), False, "offset_pagination"),
        (("SCAN t USING INDEX t_b",), False, "offset_pagination"),
    ],
)
def test_a_page_of_rows_that_are_all_sorted_needs_an_order_first(
    plan: Steps, sorts_less: bool, category: str
) -> None:
    """Each page reads all rows, whatever its OFFSET is."""
    statement = "SELECT a FROM t ORDER BY b LIMIT ? OFFSET ?"
    one = aggregate(statement, SITE, ns=200 * MS, count=50)._replace(
        rows=1000, vm_steps=50 * 100_000, full_scan_steps=50 * 10_000
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "\n".join(plan)),))
    served = IndexHelp(plan, code="CREATE INDEX t_b ON t (b);" * sorts_less, sorts_less=sorts_less)
    (found,) = findings(profile, Knows(served))
    assert (found.category, "OFFSET" in found.fix) == (category, sorts_less)


@pytest.mark.parametrize(
    ("ms", "by_range", "severity"),
    [(54, False, "high"), (53, False, "medium"), (54, True, "low")],
)
def test_what_one_index_wins_together_counts(ms: int, by_range: bool, severity: str) -> None:
    """Two statements take some 5% of a second each. If the finding is in doubt, each counts no more
    than it does alone.
    """
    scans = [
        aggregate(f"SELECT {column} FROM t WHERE b = ?", SITE, ns=ms * MS, count=50)._replace(
            rows=50, vm_steps=50 * 20_000, full_scan_steps=50 * 1000
        )
        for column in ("a", "c")
    ]
    plans = tuple(Plan(one.statement, "app.db", "SCAN t") for one in scans)
    (found,) = findings(
        replace(profile_of(*scans), plans=plans),
        Knows(replace(INDEX, by_range=by_range)),
        is_loop=False,
    )
    assert (found.category, found.severity) == ("full_scan", severity)


def test_a_range_that_is_added_up_may_be_all_rows() -> None:
    """An index on it is proposed, and is not sure to win."""
    (found,) = findings(scan(), Knows(replace(INDEX, by_range=True)))
    assert (found.severity, found.doubt[:37]) == ("medium", "SQLite searches this index by a range")
    (sure,) = findings(scan(), Knows(INDEX))
    assert (sure.severity, sure.doubt) == ("high", "")


def test_an_index_that_only_sorts_ends_no_scan() -> None:
    found = findings(scan(), Knows(replace(INDEX, searches=False, sorts_less=True)))
    assert "full_scan" not in [one.category for one in found]


def test_statistics_from_before_a_table_grew_are_reported() -> None:
    schema = Schema("app.db", (), (), (("t", None, "10"),), {"t": 20_000})
    (found,) = findings(scan(), Knows(INDEX, frozenset({"t"})), [schema])
    assert found.fix.startswith("Run ANALYZE first; it may be enough. Create an index")
    assert found.evidence[-1] == "when ANALYZE last ran, t had 10 rows; now it has 20,000"


@pytest.mark.parametrize(("steps", "doubt"), [(2 * 30 * 4 - 1, ""), (10_000, "")])
def test_a_sort_of_which_few_rows_are_taken(steps: int, doubt: str) -> None:
    """The program stops after three rows. An index in that order avoids the sort."""
    one = aggregate(READ, SITE, ns=200 * MS, count=50)._replace(rows=150, vm_steps=50 * steps)
    profile = replace(profile_of(one), plans=(Plan(READ, "app.db", "\n".join(SORTS)),))
    served = IndexHelp(
        SORTS, code="CREATE INDEX t_b_c ON t (b, c);", terms=("b", "c"), sorts_less=True
    )
    found = [one for one in findings(profile, Knows(served)) if one.category == "temp_btree_sort"]
    assert [one.doubt for one in found] == ([doubt] if steps == 10_000 else [])


STACK = (
    Frame("get", "/venv/site-packages/peewee.py", 1, "library"),
    QUERY,
    Frame("dispatch", "/venv/site-packages/flask/app.py", 5, "library"),
    MAIN,
)


def test_a_client_s_loop_of_requests_is_no_loop_of_queries() -> None:
    assert frames_outside_request(STACK) == {MAIN}
    assert frames_outside_request(STACK[:2]) == frozenset()
    one = aggregate("SELECT a FROM t WHERE id = ?", SITE, ns=50 * MS, count=50)._replace(rows=50)
    plain = profile_of(one)
    served = replace(plain, stack_samples=(StackSample(one.statement, STACK, 64, one.self_ns),))

    def loop(frame: Frame, _: str) -> Frame | None:
        return replace(frame, line=1) if frame == MAIN else None

    message = [
        [f.category for f in find_all(Report(profile), loop, {})] for profile in (plain, served)
    ]
    assert message == [["n_plus_one"], []]


def test_a_loop_within_a_framework_is_found_by_its_rows() -> None:
    """The loop is a serializer's: no line of the program is in the request."""
    outer = aggregate("SELECT id FROM book", (MAIN,), ns=MS, count=2)._replace(rows=100)
    inner = aggregate("SELECT a FROM t WHERE id = ?", (MAIN,), ns=50 * MS, count=100)
    profile = profile_of(outer, inner._replace(rows=100))
    stacks = tuple(
        StackSample(one.statement, (*STACK[:1], *STACK[2:]), 64, 1) for one in (outer, inner)
    )
    found = find_all(Report(replace(profile, stack_samples=stacks)), lambda *_: None, {})
    assert [(one.category, one.parent) for one in found] == [("n_plus_one", outer.statement)]


def test_a_function_that_calls_itself_is_a_loop() -> None:
    one = aggregate("SELECT a FROM t WHERE id = ?", (QUERY, MAIN, MAIN), ns=50 * MS, count=50)
    profile = profile_of(one._replace(rows=50))
    (found,) = findings(profile, Knows(INDEX), is_loop=False)
    assert found.evidence[-1] == "recursion in line 10 of main"


def test_a_loop_in_the_line_of_the_call_is_no_recursion() -> None:
    """For example, a comprehension."""
    one = aggregate("SELECT a FROM t WHERE id = ?", SITE, ns=50 * MS, count=50)._replace(rows=50)
    (found,) = find_all(Report(profile_of(one)), lambda frame, _: frame, {})
    assert found.evidence[-1] == "the loop is in line 3 of query"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("SELECT a FROM t_1 WHERE id = ?", "SELECT a FROM t_2 WHERE id = ?", True),
        ("SELECT a FROM t_1 WHERE id = ?", "SELECT b FROM t_2 WHERE no > ?", False),
    ],
)
def test_statements_that_differ_in_names_are_alike(first: str, second: str, same: bool) -> None:
    assert are_similar_statements(first, second) == same


def test_one_line_for_several_tables_is_one_finding() -> None:
    loops = [
        aggregate(f"SELECT a FROM t_{n} WHERE id = ?", SITE, ns=50 * MS, count=50)._replace(rows=50)
        for n in range(4)
    ]
    (found,) = findings(profile_of(*loops), Knows(INDEX))
    assert found.gain_ns == pytest.approx(4 * 49 * MS)
    assert found.evidence[-1].startswith(
        "147 ms of the saving comes from 3 other statements on this line: SELECT a FROM t_"
    )


@pytest.mark.parametrize(("tables", "shown"), [(3, "."), (4, "; 3 are shown.")])
def test_sql_for_each_of_several_tables(tables: int, shown: str) -> None:
    one = aggregate("SELECT a FROM t_0 WHERE id = ?", SITE, ns=50 * MS, count=50)._replace(rows=50)
    (of_one,) = findings(profile_of(one), Knows(INDEX))
    each = [
        replace(
            of_one,
            statement=f"SELECT a FROM t_{n} WHERE id = ?",
            code=f"CREATE INDEX t_{n}_id ON t_{n} (id);",
        )
        for n in range(tables)
    ]
    (found,) = merge_same_cause(each)
    assert found.code.count("CREATE INDEX") == 3
    assert found.fix == f"{of_one.fix} {tables} statements need an index each{shown}"


@pytest.mark.parametrize(("ns", "is_reported"), [(10 * MS, True), (9 * MS, False)])
def test_unknown_plans_are_reported(ns: int, is_reported: bool) -> None:
    """They are reported if they take a tenth of the database time or more."""
    other = aggregate("SELECT a FROM u", SITE, ns=100 * MS - ns)
    profile = profile_of(aggregate(READ, SITE, ns=ns), other)
    report = Report(replace(profile, plans=(Plan(other.statement, "app.db", "SCAN u"),)))
    message = [
        one for one in unknown_data_notes(report) if one.startswith("the plans of 1 statement (10")
    ]
    assert len(message) == is_reported
    assert not [one for one in unknown_data_notes(report, {READ}) if one in message], (
        "known otherwise"
    )


@pytest.mark.parametrize(
    ("ns", "counted", "is_reported"), [(10, 0, True), (9, 0, False), (10, 1, False)]
)
def test_unknown_counters_are_reported(ns: int, counted: int, is_reported: bool) -> None:
    """The counters of a killed program's last statements were never read."""
    other = aggregate("SELECT a FROM u", SITE, ns=(100 - ns) * MS)._replace(counted=1)
    profile = profile_of(aggregate(READ, SITE, ns=ns * MS)._replace(counted=counted), other)
    plans = tuple(Plan(one.statement, "app.db", "SCAN u") for one in profile.aggregates)
    message = [*unknown_data_notes(Report(replace(profile, plans=plans)))]
    assert bool(message) == is_reported
    for one in message:
        assert "SQLite's counters of 1 statement (10.0% of the database time)" in one


def test_indexes_of_other_collations_are_others(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "app.db")
    db.executescript(
        "CREATE TABLE t (a, b, c);"
        "CREATE INDEX plain ON t (a); CREATE INDEX anycase ON t (a COLLATE NOCASE);"
        "CREATE INDEX wide ON t (a, b); CREATE INDEX down ON t (a DESC);"
        "CREATE INDEX mixed ON t (a, b DESC); CREATE INDEX reverse ON t (a DESC, b DESC, c);"
        "CREATE INDEX lower ON t (lower(a)); CREATE INDEX upper ON t (upper(a), b);"
    )
    db.close()
    known = {index.name: index for index in read_schema(str(tmp_path / "app.db")).indexes}

    def beginning_of(name: str) -> set[str]:
        return {
            other
            for other, index in known.items()
            if other != name
            and known[name].is_prefix_of(index)
            and len(index.columns) > len(known[name].columns)
        }

    assert beginning_of("plain") == {"wide", "mixed", "reverse"}
    assert beginning_of("down") == {"wide", "mixed", "reverse"}
    assert beginning_of("anycase") == set()
    assert beginning_of("lower") == set()
    assert beginning_of("wide") == {"reverse"}
    assert beginning_of("mixed") == set()
    assert isinstance(known["plain"], Index)


@pytest.mark.parametrize(("number", "text"), [(1, "1 row"), (0, "0 rows"), (2.5, "2.5 rows")])
def test_rows(number: float, text: str) -> None:
    assert rows_in_words(number) == text


@pytest.mark.parametrize(
    ("columns", "is_partial", "by", "fix"),
    [
        (("st",), False, "", ""),
        (("at",), False, "", "Run ANALYZE"),
        (("at",), True, "", ""),
        (("at",), False, "INDEXED BY o_st_at", "Remove INDEXED BY"),
    ],
)
def test_the_beginning_of_an_index_fits_no_better(
    columns: tuple[str, ...], is_partial: bool, by: str, fix: str
) -> None:
    """A shorter index fits no better, and neither does a partial one."""
    sql = f"SELECT id FROM o {by} WHERE cust = ? AND st = ? AND at > ?"
    used, other = (
        Index(
            name, "o", of, False, of == columns and is_partial, tuple(("BINARY", False) for _ in of)
        )
        for name, of in (("o_st_at", ("st", "at")), ("o_other", columns))
    )
    one = aggregate(sql, SITE, ns=200 * MS, count=50)._replace(rows=50, vm_steps=50 * 20_000)
    plan = Plan(sql, "app.db", "SEARCH o USING INDEX o_st_at (st=? AND at>?)")
    schema = Schema("app.db", (used, other))
    profile = replace(profile_of(one), plans=(plan,))
    found = findings(
        profile, Knows(IndexHelp(("SEARCH o USING INDEX o_st_at (st=? AND at>?)",))), [schema]
    )
    assert [one.fix[: len(fix)] for one in found if one.category == "bad_index_choice"] == [
        fix
    ] * bool(fix)


@pytest.mark.parametrize(
    ("inside", "is_fault"),
    [
        ("SCAN s", True),
        ("SEARCH s USING INDEX s_a (a=?)", False),
        ("SEARCH s USING AUTOMATIC COVERING INDEX (a=?)", True),
    ],
)
def test_a_subquery_that_an_index_serves_is_no_fault(inside: str, is_fault: bool) -> None:
    statement = "SELECT a FROM t WHERE NOT EXISTS (SELECT ? FROM s WHERE s.a = t.a)"
    one = aggregate(statement, SITE, ns=200 * MS, count=50)._replace(rows=50, vm_steps=50 * 100_000)
    plan = f"SCAN t\nCORRELATED SCALAR SUBQUERY 1\n  {inside}"
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", plan),))
    found = findings(profile, Knows(IndexHelp((plan,))), is_loop=False)
    assert ("correlated_subquery" in {each.category for each in found}) == is_fault
    assert all(each.fix == EXISTING for each in found if each.category == "correlated_subquery")


def test_an_order_that_no_index_has_is_no_fault() -> None:
    statement = "SELECT a FROM t ORDER BY length(a) LIMIT ?"
    one = aggregate(statement, SITE, ns=400 * MS, count=50)._replace(
        rows=50, vm_steps=50 * 100_000, full_scan_steps=50 * 10_000
    )
    plan = "SCAN t\nUSE TEMP B-TREE FOR ORDER BY"
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", plan),))
    has_order = IndexHelp((plan,), code="CREATE INDEX t_b ON t (b);", sorts_less=True)
    for served, expected in ((has_order, "temp_btree_sort"), (IndexHelp((plan,)), "heavy_query")):
        found = findings(profile, Knows(served), is_loop=False)
        assert expected in {each.category for each in found}
        assert len(found) == 1
