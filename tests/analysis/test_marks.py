"""Marks in plans: expensive steps are marked, and no others, on programs with a real SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import pytest
from analysis.by_hand import MAIN, aggregate, process, profile_of

import queryprof
from queryprof.analysis.bottlenecks import Bottleneck
from queryprof.analysis.marks import mark_of
from queryprof.analysis.report import Report
from queryprof.analysis.totals import add_aggregates
from queryprof.model import Distribution, Handoff, Profile
from queryprof.report.text.plans import marked_steps

pytestmark = pytest.mark.once

USERS = 5000
TICKETS = 2000


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE user (id INTEGER PRIMARY KEY, name TEXT, country TEXT);"
        "CREATE INDEX user_name ON user (name);"
        "CREATE TABLE ticket (id INTEGER PRIMARY KEY, user INTEGER, state TEXT, subject TEXT);"
        "CREATE INDEX ticket_user ON ticket (user);"
    )
    connection.executemany(
        "INSERT INTO user VALUES (?, ?, ?)",
        [(n, f"name {n}", f"country {n % 50}") for n in range(USERS)],
    )
    connection.executemany(
        "INSERT INTO ticket VALUES (?, ?, ?, ?)",
        [(n, n % 100, "open", f"subject {n * 7919 % TICKETS}") for n in range(TICKETS)],
    )
    yield connection
    connection.close()


Marked = Callable[..., list[str]]


@pytest.fixture
def marked(database: sqlite3.Connection) -> Marked:
    """Return the marked steps of a query that runs some times, as the report shows them."""

    def marked(sql: str, times: int = 20, plan_is_known: bool = True) -> list[str]:
        with queryprof.profile() as recording:
            cursor = database.cursor()
            for number in range(times):
                cursor.execute(sql, (number,) if "?" in sql else ()).fetchall()
        (found,) = (
            b for b in Report(recording.profile).ranking.bottlenecks if "FROM" in b.statement
        )
        if not plan_is_known:  # the plan is unknown if the program has set a callback
            found = found._replace(plans=())
        return marks_of(found)

    return marked


def marks_of(found: Bottleneck) -> list[str]:
    return [
        f"{step.strip()} ! {sign}" for step, sign in marked_steps(found.plans, found.mark) if sign
    ]


def test_a_correlated_subquery_is_marked_and_not_the_sort(marked: Marked) -> None:
    """The sort has only a few rows."""
    (mark,) = marked(
        "SELECT name, (SELECT count(*) FROM ticket WHERE user + 0 = u.id) AS n FROM user AS u"
        " WHERE country = 'country 7' ORDER BY n DESC LIMIT 5",
        times=2,
    )
    assert mark.startswith("CORRELATED SCALAR SUBQUERY ! runs again for each row: ")


def test_a_scans_mark_has_what_it_reads_and_returns(marked: Marked) -> None:
    """SQLite counts one step less than there are rows."""
    (mark,) = marked("SELECT id FROM user WHERE country || '' = 'country 3'")
    assert mark == "SCAN user ! reads 5,000 rows to return 100"


def test_a_scan_along_an_index_is_marked(marked: Marked) -> None:
    """LIKE reads an index that cannot help it."""
    (mark,) = marked("SELECT name FROM user WHERE name LIKE '%e 4999'")
    assert mark == "SCAN user USING COVERING INDEX user_name ! reads 5,000 rows to return 1"


def test_a_scan_of_an_unknown_plan_is_marked_by_the_counter(marked: Marked) -> None:
    """The counter shows how much is read."""
    (mark,) = marked("SELECT id FROM user WHERE country || '' = 'country 3'", plan_is_known=False)
    assert (
        mark
        == "(unknown: queryprof reads plans only of sqlite3 and aiosqlite) ! reads 5,000 rows to return 100"
    )


def test_a_sort_is_marked_when_it_is_of_many_rows(marked: Marked) -> None:
    """A sort is marked if it sorts all returned rows, or the rows that a LIMIT drops."""
    (mark,) = marked("SELECT subject FROM ticket ORDER BY subject")
    assert mark == "USE TEMP B-TREE FOR ORDER BY ! sorts each time"
    (mark,) = marked("SELECT subject FROM ticket WHERE user >= 0 ORDER BY subject LIMIT 9")
    assert mark == "USE TEMP B-TREE FOR ORDER BY ! sorts each time"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM ticket",
        "SELECT DISTINCT state FROM ticket WHERE user = ?",
        "SELECT DISTINCT subject FROM ticket WHERE user < 20",
        "SELECT subject FROM ticket WHERE user = ? ORDER BY subject",
        "SELECT id FROM ticket WHERE user = ?",
    ],
)
@pytest.mark.repeats
def test_what_costs_little_is_not_marked(marked: Marked, sql: str) -> None:
    """The statements need all rows that they read, or read few."""
    assert marked(sql, times=200) == []


def test_once_is_not_each_time(marked: Marked) -> None:
    """A report that runs once gets one mark."""
    (mark,) = marked(
        "SELECT a.subject, b.subject FROM ticket AS a JOIN ticket AS b ON a.subject = b.subject"
        " ORDER BY b.state, a.subject",
        times=1,
    )
    assert "each time" not in mark


def test_what_is_nothing_to_the_run_is_not_marked() -> None:
    """The scan takes 0.1% of the time, or less than a millisecond."""
    scan = {"counted": 1, "vm_steps": 90_000, "full_scan_steps": 20_000}

    def marks(ns: int, other_ns: int) -> list[object]:
        profile = profile_of(aggregate("A", ns=ns)._replace(**scan), aggregate("B", ns=other_ns))
        return [b.mark for b in Report(profile).ranking.bottlenecks if b.statement == "A"]

    assert marks(5_000_000, 5_000_000)[0] is not None
    assert marks(5_000_000, 5_000_000_000) == [None]
    assert marks(500_000, 500_000) == [None]


@pytest.mark.parametrize(
    ("rows", "executions", "is_marked"),
    [
        (1000, 1, True),
        (999, 1, False),
        (400, 250, True),
        (400, 249, False),
        (100, 1000, True),
        (99, 10_000, False),
    ],
)
def test_a_small_scan_is_marked_where_it_runs_often(
    rows: int, executions: int, is_marked: bool
) -> None:
    read = {
        "counted": executions,
        "vm_steps": rows * executions,
        "full_scan_steps": rows * executions,
    }
    profile = profile_of(aggregate("A", ns=5_000_000, count=executions)._replace(**read))
    (found,) = Report(profile).ranking.bottlenecks
    assert (found.mark is not None) == is_marked


@pytest.mark.parametrize(
    ("wait_ns", "count", "back_ns", "queues"),
    [
        (150_000, 50_000, 0, False),
        (2_000_000, 2, 0, False),
        (2_000_000, 100, 0, True),
        (2_000_000, 100, 1_999_999, True),
        (2_000_000, 100, 2_000_000, False),
    ],
)
def test_waiting_for_a_thread_is_a_sign_when_it_costs(
    wait_ns: int, count: int, back_ns: int, queues: bool
) -> None:
    """The wait must take a millisecond each and a hundredth of the run, while the loop is not
    busy.
    """

    def times(ns: int) -> Distribution:
        return Distribution(count, ns * count, ns, {100: count})

    handoff = Handoff(
        "aiosqlite",
        (MAIN,),
        "",
        count,
        0,
        0,
        times(wait_ns),
        times(1000),
        times(back_ns),
        times(wait_ns),
    )
    profile = Profile((process(),), (), handoffs=(handoff,))
    assert [found.waits_mostly_in_queue for found in Report(profile).handoffs] == [queues]


def test_what_is_not_known_is_no_mark() -> None:
    """A slow statement without counters and plan may do anything."""
    slow = aggregate("SELECT 1", ns=10**9)._replace(counted=0, vm_steps=0)
    assert mark_of((), add_aggregates([slow]), 1.0) is None
