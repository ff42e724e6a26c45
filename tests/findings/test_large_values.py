"""Large values that are read or written, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding
from queryprof.model import Plan, Profile, Thread
from queryprof.model.files import FileWork
from queryprof.planner.facts import NoPlanner
from queryprof.sql.triggers import Trigger

pytestmark = pytest.mark.once

MS = 1_000_000
SITE = (QUERY, MAIN)
READ, CHANGE = "SELECT a FROM t WHERE b = ?", "UPDATE t SET a = ? WHERE b = ?"


class Fires(NoPlanner):
    """A planner for a schema with or without a trigger."""

    def __init__(self, columns: tuple[str, ...] | None) -> None:
        fired = Trigger("t_words", "UPDATE", "t", columns or ())
        self._fired = () if columns is None else (fired,)

    def triggers(self, statement: str) -> tuple[Trigger, ...]:
        return self._fired if statement == CHANGE else ()


def findings(profile: Profile, columns: tuple[str, ...] | None = None) -> tuple[Finding, ...]:
    """Return the findings of a program that runs for one second."""
    return find_all(Report(profile), lambda *_: None, {}, Fires(columns))


@pytest.mark.parametrize(
    ("rows", "count", "pages", "is_one"),
    [
        (2, 50, 16, True),
        (1, 100, 16, False),  # one row is needed
        (2, 49, 16, False),  # a hundred rows in total
        (2, 50, 15.9, False),  # eight pages per row
    ],
)
def test_values_that_are_read(rows: int, count: int, pages: float, is_one: bool) -> None:
    one = aggregate(READ, SITE, ns=300 * MS, count=count)._replace(
        rows=rows * count,
        vm_steps=20 * count,
        page_fetches=round(10 * pages),
        page_fetch_samples=10,
    )
    found = [each.category for each in findings(profile_of(one))]
    assert ("large_values" in found) == is_one


def changes(count: int, written: int, worked_ms: int = 300, steps: int = 0) -> Profile:
    none = FileWork(CHANGE, SITE, "", Thread(1, "MainThread"), "execute", *([0] * 10))
    one = aggregate(CHANGE, SITE, ns=worked_ms * MS, count=count)._replace(
        rows=count, vm_steps=steps * count
    )
    return replace(
        profile_of(one), file_work=(replace(none, calls=count, written_bytes=written * count),)
    )


@pytest.mark.parametrize(
    ("count", "written", "columns", "is_one"),
    [
        (5, 262_144, None, True),
        (4, 262_144, None, False),
        (5, 262_143, None, False),
        (5, 262_144, (), False),  # a trigger may have written the bytes
    ],
)
def test_values_that_are_written(
    count: int, written: int, columns: tuple[str, ...] | None, is_one: bool
) -> None:
    found = [each.category for each in findings(changes(count, written), columns)]
    assert ("large_values" in found) == is_one


@pytest.mark.parametrize(
    ("synced_ms", "category"), [(220, "commit_per_write"), (90, "large_values")]
)
def test_syncs_are_not_the_time_of_large_values(synced_ms: int, category: str) -> None:
    """A hundred transactions sync as often with small values."""
    profile = changes(100, 262_144)
    work = replace(profile.file_work[0], syncs=100, sync_ns=synced_ms * MS)
    found = findings(replace(profile, file_work=(work,)))[0]
    assert found.category == category
    if category == "large_values":
        assert found.gain_ns == (300 - synced_ms) * MS


@pytest.mark.parametrize(
    ("pages", "steps", "is_one"),
    [
        (64, 30, True),
        (63, 30, False),
        (64, 96, True),
        (64, 97, False),  # the pages may be those of other rows
    ],
)
def test_an_update_that_reads_a_large_value(pages: int, steps: int, is_one: bool) -> None:
    """SQLite compares the old value with the new one, and may write little."""
    profile = changes(50, 0, steps=steps)
    (one,) = profile.aggregates
    read = one._replace(
        page_fetches=50 * pages, page_fetch_samples=50, counted=50, vm_steps=50 * steps
    )
    found = findings(replace(profile, aggregates=(read,)))
    assert ("large_values" in [each.category for each in found]) == is_one


@pytest.mark.parametrize(
    ("count", "worked_ms", "steps", "columns", "fix"),
    [
        (20, 1, 0, (), "AFTER UPDATE OF"),
        (19, 1, 0, (), ""),
        (21, 1, 999, (), ""),  # less than 50 us and 1,000 steps each
        (21, 1, 1000, (), "AFTER UPDATE OF"),
        (20, 1, 0, ("a",), "Do less in the trigger"),
        (20, 1, 0, None, ""),
    ],
)
def test_a_trigger_takes_most(
    count: int, worked_ms: int, steps: int, columns: tuple[str, ...] | None, fix: str
) -> None:
    found = findings(changes(count, 0, worked_ms, steps), columns)
    (message,) = [one.fix for one in found if one.category == "trigger_work"] or [""]
    assert fix in message
    assert bool(fix) == bool(message)


@pytest.mark.parametrize(
    ("sql", "plan", "is_one"),
    [
        (READ, "SCAN t", True),
        ("SELECT a FROM words WHERE words MATCH ?", "SCAN words VIRTUAL TABLE INDEX 0:M1", False),
        ("SELECT a, (SELECT count(*) FROM u) FROM t WHERE b = ?", "SCAN t", False),
    ],
)
def test_pages_of_no_row_are_no_large_values(sql: str, plan: str, is_one: bool) -> None:
    """They are the pages of a virtual table, or of a table that is counted in one step."""
    one = aggregate(sql, SITE, ns=300 * MS, count=50)._replace(
        rows=100, vm_steps=1000, page_fetches=120, page_fetch_samples=10
    )
    profile = replace(profile_of(one), plans=(Plan(sql, "a.db", plan),))
    assert ("large_values" in [each.category for each in findings(profile)]) == is_one


@pytest.mark.parametrize(
    ("plan", "pages", "is_one"),
    [
        ("SCAN t", 3, True),
        ("SCAN t", 2.9, False),
        ("SCAN t USING INDEX t_b", 7.9, False),
        ("SCAN t USING INDEX t_b", 8, True),
        ("SEARCH t USING INTEGER PRIMARY KEY (rowid=?)", 7.9, False),
        ("SCAN t\nSEARCH u USING INTEGER PRIMARY KEY (rowid=?)", 7.9, False),
    ],
)
def test_a_scan_fetches_no_pages_of_an_index(plan: str, pages: float, is_one: bool) -> None:
    """Each of 10 executions returns 100 rows."""
    one = aggregate(READ, SITE, ns=300 * MS, count=10)._replace(
        rows=1000, vm_steps=5000, page_fetches=round(pages * 1000), page_fetch_samples=10
    )
    profile = replace(profile_of(one), plans=(Plan(READ, "a.db", plan),))
    assert ("large_values" in [each.category for each in findings(profile)]) == is_one


@pytest.mark.parametrize(("rows", "is_one"), [(100, True), (101, False)])
def test_what_other_statements_of_a_transaction_write(rows: int, is_one: bool) -> None:
    """A transaction with more than two rows per update: its commits also write the pages of the
    others.
    """
    insert = "INSERT INTO u VALUES (?)"
    other = aggregate(insert, SITE, ns=MS, operation="executemany")._replace(rows=rows)
    commit = aggregate("COMMIT", SITE, ns=100 * MS, count=51, operation="commit")
    profile = changes(50, 0)
    work = replace(
        profile.file_work[0], statement="COMMIT", operation="commit", written_bytes=50 * 300_000
    )
    profile = replace(profile, aggregates=(*profile.aggregates, other, commit), file_work=(work,))
    assert ("large_values" in [each.category for each in findings(profile)]) == is_one


@pytest.mark.parametrize(("number", "message"), [(3, "t0, t1, t2"), (4, "t0, t1, t2 and 1 more")])
def test_some_of_many_triggers_are_listed(number: int, message: str) -> None:
    class Many(NoPlanner):
        def triggers(self, statement: str) -> tuple[Trigger, ...]:
            return tuple(Trigger(f"t{at}", "UPDATE", "t", ()) for at in range(number))

    (one,) = find_all(Report(changes(50, 0)), lambda *_: None, {}, Many())
    assert one.evidence[-1] == f"the statement fires the triggers {message}"


@pytest.mark.parametrize(
    ("steps", "has_condition", "said"),
    [(49, True, ""), (50, True, "may fire the trigger"), (49, False, "fires the trigger")],
)
def test_a_trigger_whose_condition_is_false_takes_no_time(
    steps: int, has_condition: bool, said: str
) -> None:
    """The value that the statement writes takes the time."""

    class Conditional(NoPlanner):
        def triggers(self, statement: str) -> tuple[Trigger, ...]:
            return (Trigger("t_words", "UPDATE", "t", (), has_condition),)

    one = aggregate(CHANGE, SITE, ns=300 * MS, count=50)
    one = one._replace(rows=50, vm_steps=50 * steps, counted=50)
    found = find_all(Report(profile_of(one)), lambda *_: None, {}, Conditional())
    slow = [each.evidence[-1] for each in found if each.category == "trigger_work"]
    assert slow == ([f"the statement {said} t_words"] if said else [])
