"""Joins that multiply rows which DISTINCT drops again, by the statement and its plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.model import Frame, Plan, Profile, StackSample
from queryprof.planner.facts import NoPlanner

pytestmark = pytest.mark.once

MS = 1_000_000
SITE = (QUERY, MAIN)
SELECT = (
    "SELECT DISTINCT b.id, b.name FROM band b JOIN concert c ON c.band = b.id WHERE c.seats > ?"
)
PLAN = "SCAN b\nSEARCH c USING INDEX concert_band (band=?)\nUSE TEMP B-TREE FOR DISTINCT"
REVERSED = "SCAN c\nSEARCH b USING INTEGER PRIMARY KEY (rowid=?)\nUSE TEMP B-TREE FOR DISTINCT"


def joined(
    sql: str = SELECT, plan: str = PLAN, count: int = 50, steps: int = 90_000, library: str = ""
) -> Profile:
    """Executions of 6 ms each, which return 100 rows."""
    one = aggregate(sql, SITE, ns=6 * count * MS, count=count)._replace(
        rows=100 * count, vm_steps=steps * count
    )
    called = Frame("execute", f"/venv/site-packages/{library}/orm.py", 1, "library")
    stack = (called, *SITE) if library else SITE
    return replace(
        profile_of(one),
        plans=(Plan(sql, "a.db", plan),),
        stack_samples=(StackSample(sql, stack, 1, 1),),
    )


def found(profile: Profile) -> Finding | None:
    findings = find_all(Report(profile), lambda *_: None, {})
    return next((one for one in findings if one.category == "duplicate_rows"), None)


@pytest.mark.parametrize(
    ("sql", "is_one"),
    [
        (SELECT, True),
        (SELECT.replace("b.id, b.name", '"b"."id" AS "first", upper(b.name)'), True),
        (SELECT + " ORDER BY b.name", True),
        (SELECT.replace("DISTINCT ", ""), False),
        (SELECT.replace(" b.id, b.name", ""), False),  # no SQL, as a stranger's trace may have
        (SELECT.replace("b.id, b.name", "id, name"), False),  # of either table
        (SELECT.replace("b.name", "c.seats"), False),
        (SELECT + " ORDER BY c.seats", False),
        (SELECT + " GROUP BY b.id HAVING count(*) > 2", False),
    ],
)
def test_one_table_is_only_compared(sql: str, is_one: bool) -> None:
    assert bool(found(joined(sql))) == is_one


@pytest.mark.parametrize(
    ("plan", "is_one"),
    [
        (PLAN, True),
        (PLAN.replace("SEARCH c USING INDEX concert_band (band=?)", "SCAN c"), False),
        (PLAN.replace("INDEX concert_band", "AUTOMATIC COVERING INDEX"), False),
        ("SCAN x\nUSE TEMP B-TREE FOR DISTINCT", False),  # a view, perhaps
    ],
)
def test_the_other_table_can_be_searched(plan: str, is_one: bool) -> None:
    assert bool(found(joined(plan=plan))) == is_one


@pytest.mark.parametrize(
    ("count", "steps", "is_one"),
    [(50, 9_000, True), (50, 8_999, False), (3, 9_000, True), (2, 9_000, False)],
)
def test_how_many_rows_are_dropped(count: int, steps: int, is_one: bool) -> None:
    assert bool(found(joined(count=count, steps=steps))) == is_one


def test_a_query_that_begins_with_the_other_table_may_be_right() -> None:
    certain, doubtful = found(joined()), found(joined(plan=REVERSED))
    assert certain
    assert doubtful
    assert (certain.severity, certain.doubt) == (Severity.HIGH, "")
    assert doubtful.severity is Severity.MEDIUM
    assert "begins with c" in doubtful.doubt


@pytest.mark.parametrize(
    ("library", "words"),
    [("", "WHERE EXISTS"), ("sqlalchemy", ".any("), ("django", "Exists(")],
)
def test_the_fix_is_in_the_librarys_words(library: str, words: str) -> None:
    one = found(joined(library=library))
    assert one
    assert words in one.fix


class Reads(NoPlanner):
    """A planner that knows the tables from which a statement reads columns."""

    def tables(self, statement: str) -> frozenset[str]:
        return frozenset({"Band", "concert"})


@pytest.mark.parametrize(
    ("sql", "plan", "is_unused"),
    [
        ("SELECT b.name FROM band b, concert c, hall WHERE b.id = c.band", "SCAN hall", True),
        ("SELECT b.name FROM band b, concert c, hall h WHERE b.id = c.band", "SCAN h", True),
        ("SELECT b.name FROM band b, concert c, hall WHERE b.id = c.band", "SCAN c", False),
        ("SELECT b.name FROM band b JOIN concert c ON b.id = c.band", "SCAN c", False),
        # rows of WITH, of a function, and of a view's own table
        ("WITH w AS (SELECT ?) SELECT name FROM band, w", "MATERIALIZE w\nSCAN w", False),
        ("SELECT name FROM band, json_each(?)", "SCAN json_each VIRTUAL TABLE INDEX 1:", False),
        ("SELECT name FROM band, halls_of_towns", "SCAN q", False),
    ],
)
def test_a_table_of_which_no_column_is_used(sql: str, plan: str, is_unused: bool) -> None:
    profile = joined(sql, f"SCAN band\n{plan}")
    findings = find_all(Report(profile), lambda *_: None, {}, Reads())
    unused = [one for one in findings if "uses no column of" in " ".join(one.evidence)]
    assert [one.category for one in unused] == ["duplicate_rows"] * is_unused


@pytest.mark.parametrize(("steps", "is_one"), [(9000, True), (8999, False)])
def test_few_combined_rows_are_no_finding(steps: int, is_one: bool) -> None:
    sql = "SELECT b.name FROM band b, concert c, hall WHERE b.id = c.band"
    profile = joined(sql, "SCAN b\nSCAN hall", steps=steps)
    findings = find_all(Report(profile), lambda *_: None, {}, Reads())
    assert any(one.category == "duplicate_rows" for one in findings) == is_one


COUNTS = (
    "SELECT a.id, count(DISTINCT p.id), count(DISTINCT c.id) FROM album a LEFT JOIN photo p ON"
    " p.album = a.id LEFT JOIN comment c ON c.album = a.id GROUP BY a.id"
)
ROWS = "SELECT a.id, p.id, c.id FROM album a, photo p, comment c WHERE p.album = a.id"


class Crosses(NoPlanner):
    """A planner that knows which tables a join multiplies."""

    def __init__(self, tables: tuple[str, ...]) -> None:
        self._tables = tables

    def crossed_tables(self, statement: str, plans: object) -> tuple[str, ...]:
        return self._tables


def multiplied(
    sql: str, tables: tuple[str, ...], steps: int = 900_000, library: str = ""
) -> list[Finding]:
    profile = joined(sql, "SCAN a\nSEARCH p\nSEARCH c", steps=steps, library=library)
    findings = find_all(Report(profile), lambda *_: None, {}, Crosses(tables))
    return [one for one in findings if "with every row of" in one.evidence[0]]


CROSSED = ("photo", "comment", "album")


@pytest.mark.parametrize(
    ("steps", "tables", "is_one"),
    [
        (16 * 1600, CROSSED, True),  # 16 for each of the 100 groups
        (16 * 1600 - 1, CROSSED, False),
        (16 * 1600, (), False),
    ],
)
def test_how_many_rows_are_multiplied(steps: int, tables: tuple[str, ...], is_one: bool) -> None:
    assert bool(multiplied(COUNTS, tables, steps)) == is_one


def test_counts_of_distinct_rows_show_that_a_join_multiplies() -> None:
    (counts,), (rows,) = multiplied(COUNTS, CROSSED), multiplied(ROWS, CROSSED)
    assert (counts.severity, counts.doubt) == (Severity.HIGH, "")
    assert (rows.severity, bool(rows.doubt)) == (Severity.MEDIUM, True)
    assert "for each row of album: 900,000 VM steps each" in counts.evidence[0]
    assert "for each row of album: 100 rows each" in rows.evidence[0]
    (limited,) = multiplied(f"{ROWS} LIMIT ?", CROSSED)  # LIMIT hides how many rows are joined
    assert "for each row of album: 900,000 VM steps each" in limited.evidence[0]


@pytest.mark.parametrize(
    ("sql", "tables", "library", "words"),
    [
        (COUNTS, CROSSED, "", "(SELECT count(*) FROM photo"),
        (COUNTS, CROSSED, "django", "Subquery()"),
        (COUNTS, CROSSED, "sqlalchemy", "scalar_subquery()"),
        (ROWS, CROSSED, "", "Query photo and comment separately"),
        (ROWS, CROSSED, "sqlalchemy", "selectinload()"),
        (ROWS, ("photo", "comment"), "sqlalchemy", "Add the condition"),
    ],
)
def test_the_fix_of_a_multiplying_join(
    sql: str, tables: tuple[str, ...], library: str, words: str
) -> None:
    (one,) = multiplied(sql, tables, library=library)
    assert words in one.fix


BOTH = "SELECT a.x FROM atom a JOIN wanted w ON w.id = a.id ORDER BY a.id"
IN_TURN = "SCAN a\nSEARCH w USING INTEGER PRIMARY KEY (rowid=?)"


@pytest.mark.parametrize(
    ("sql", "plan", "read", "is_one"),
    [
        (BOTH, IN_TURN, 10_000, True),
        (BOTH, IN_TURN, 9_999, False),
        (BOTH + " WHERE w.y = ?", IN_TURN, 10_000, False),
        (BOTH, "SCAN a\nSCAN w", 10_000, False),
        (BOTH, "SCAN a", 10_000, False),
        (BOTH + " LIMIT 5", IN_TURN, 10_000, False),
        (BOTH.replace("wanted", "kept"), IN_TURN, 10_000, False),  # no temporary table
        (BOTH.replace("SELECT", "SELECT DISTINCT"), IN_TURN, 10_000, False),
        (BOTH.replace("a.x", "count(*)"), IN_TURN, 10_000, False),
        (BOTH.replace("ORDER", "GROUP"), IN_TURN, 10_000, False),
    ],
)
def test_a_join_that_begins_with_the_large_table(
    sql: str, plan: str, read: int, is_one: bool
) -> None:
    """Each execution returns 100 rows."""
    profile = joined(sql, plan, steps=3 * read)
    one = profile.aggregates[0]._replace(full_scan_steps=read * 50)
    made = aggregate("CREATE TEMP TABLE IF NOT EXISTS wanted (id INTEGER)", SITE, ns=MS)
    findings = find_all(Report(replace(profile, aggregates=(one, made))), lambda *_: None, {})
    found = [each for each in findings if "CROSS JOIN" in each.fix]
    assert len(found) == is_one
    assert all("FROM wanted CROSS JOIN a" in each.fix and each.doubt for each in found)
