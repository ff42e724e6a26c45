"""Findings about statements that take much of the time, and their advice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of
from findings.test_handed_gains import handed

from queryprof.analysis.report import Report
from queryprof.core._core import histogram_bucket
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.model import Aggregate, Plan, Profile, Thread
from queryprof.model.files import FileWork
from queryprof.model.postgresql import ServerFacts, ServerPlan
from queryprof.report.findings.text import saving_in_words

pytestmark = pytest.mark.once

MS = 1_000_000
MB = 1_000_000
SITE = (QUERY, MAIN)
QUERY_TEXT = "SELECT a FROM t WHERE b = ?"


def findings(profile: Profile) -> tuple[Finding, ...]:
    """Return the findings of a program that runs for one second."""
    return find_all(Report(profile), lambda *_: None, {})


def files(statement: str, **figures: int) -> FileWork:
    none = FileWork(statement, SITE, "", Thread(1, "MainThread"), "execute", *([0] * 10))
    return replace(none, calls=1, **figures)


@pytest.mark.parametrize(
    ("moved_ms", "read", "written", "is_spilled"),
    [
        (120, 10 * MB, 10 * MB, True),
        (118, 10 * MB, 10 * MB, False),
        (120, 10 * MB - 1, 10 * MB, False),
        (120, 10 * MB, 10 * MB - 1, False),
    ],
)
def test_pages_that_do_not_fit_in_the_cache(
    moved_ms: int, read: int, written: int, is_spilled: bool
) -> None:
    """They take a fifth of the time of a write, and many bytes are read and written again."""
    insert = "INSERT INTO t SELECT * FROM u"
    work = files(
        insert,
        read_bytes=read,
        read_ns=moved_ms * MS // 2,
        written_bytes=written,
        write_ns=moved_ms * MS // 2,
    )
    one = aggregate(insert, SITE, ns=599 * MS, count=5)
    (found,) = findings(replace(profile_of(one), file_work=(work,)))
    assert ("PRAGMA cache_size" in found.fix) == is_spilled
    assert found.gain_ns == (moved_ms * MS if is_spilled else 599 * MS)


def test_one_execution_that_takes_most_of_the_time() -> None:
    one = aggregate("DELETE FROM t WHERE a < ?", SITE, ns=400 * MS, count=30)._replace(
        execution_max_ns=371 * MS,
        max_ns=371 * MS,
        histogram={histogram_bucket(MS): 29, histogram_bucket(371 * MS): 1},
    )
    (found,) = findings(profile_of(one))
    assert found.category == "heavy_query"
    assert found.evidence[-1].startswith("the slowest execution took 371 ms; the median is ")
    assert saving_in_words(found) == "takes 400 ms (40.0% of the run)"  # no fix is known
    assert not found.doubt


@pytest.mark.parametrize(
    ("statement", "count", "steps", "is_view"),
    [
        ("SELECT plays FROM charts WHERE song = ?", 5, 2000, True),
        ("SELECT plays FROM charts AS c WHERE c.song = ?", 5, 2000, True),
        ("SELECT plays FROM charts WHERE song = ?", 4, 2000, False),
        ("SELECT plays FROM charts WHERE song = ?", 5, 1999, False),
        ("SELECT plays FROM charts", 5, 2000, False),
        ("SELECT SCAN FROM charts WHERE song = ?", 5, 2000, False),
        ("SELECT a FROM (SELECT a FROM t WHERE b = ?) AS charts", 5, 2000, False),
    ],
)
def test_a_view_that_is_computed_for_each_search(
    statement: str, count: int, steps: int, is_view: bool
) -> None:
    one = aggregate(statement, SITE, ns=500 * MS, count=count)._replace(
        rows=2 * count, vm_steps=steps * count, counted=count
    )
    scanned = "c" if " AS c " in statement else "charts"
    scan = "SCAN" if "SELECT SCAN" in statement else f"SCAN {scanned}"  # of a stranger's trace
    tree = f"CO-ROUTINE charts\n  SCAN play USING COVERING INDEX play_song\n{scan}"
    plans = (Plan(statement, "app.db", tree),)
    (found,) = findings(replace(profile_of(one), plans=plans))
    assert ("all rows of the view charts" in " ".join(found.evidence)) == is_view
    assert ("Query the view's tables directly" in found.fix) == is_view


def test_a_view_whose_name_is_not_in_the_plan() -> None:
    """Its rows are looked up in a table; a covering index would save a small part."""
    statement = "SELECT value FROM latest WHERE name = ?"
    one = aggregate(statement, SITE, ns=500 * MS, count=30)._replace(
        rows=30, vm_steps=300_000 * 30, counted=30
    )
    one = one._replace(page_fetches=20_000 * 30, page_fetch_samples=30)
    tree = "CO-ROUTINE (subquery-3)\n  SEARCH r USING INDEX r_at (a=?)\nSCAN (subquery-3)"
    plans = (Plan(statement, "app.db", tree),)
    (found,) = findings(replace(profile_of(one), plans=plans))
    assert found.category == "heavy_query"
    assert "computes all rows of a view" in found.evidence[1]


@pytest.mark.parametrize(
    ("count", "fix"), [(1, "how often the statement runs"), (5, "create it once")]
)
def test_what_is_made_again_and_again(count: int, fix: str) -> None:
    made = aggregate("CREATE TABLE a AS SELECT * FROM b", SITE, ns=300 * MS, count=count)
    (found,) = findings(profile_of(made))
    assert fix in found.fix


@pytest.mark.parametrize(("syncs", "fix"), [(99, "No known cause"), (100, "one transaction")])
def test_schema_changes_without_syncs_are_in_a_transaction(syncs: int, fix: str) -> None:
    """There are a hundred changes of two tables. In separate transactions, each would sync a
    file.
    """
    made = [aggregate(f"CREATE TABLE t{number} (x)", SITE, ns=3 * MS) for number in range(100)]
    work = files(made[0].statement, syncs=syncs)
    (found,) = findings(replace(profile_of(*made), file_work=(work,)))
    assert found.category == "heavy_query"
    assert fix in found.fix


@pytest.mark.parametrize(("count", "fix"), [(19, "write less"), (20, "Commit less often")])
def test_few_commits_cannot_be_fewer(count: int, fix: str) -> None:
    one = aggregate("COMMIT", SITE, ns=600 * MS, operation="commit", count=count)
    (found,) = findings(profile_of(one))
    assert found.category == "heavy_query"
    assert fix in found.fix


def test_what_no_transaction_takes_is_not_put_into_one() -> None:
    vacuum = aggregate("VACUUM", SITE, ns=600 * MS, count=30)
    work = files("VACUUM", syncs=60, sync_ns=200 * MS)
    (found,) = findings(replace(profile_of(vacuum), file_work=(work,)))
    assert found.category == "heavy_query"
    assert "freelist_count" in found.fix


@pytest.mark.parametrize(
    ("statement", "fix"),
    [
        ("PRAGMA wal_checkpoint(?)", "Leave checkpoints to SQLite"),
        ("PRAGMA main.wal_checkpoint", "Leave checkpoints to SQLite"),
        ("PRAGMA quick_check", "Check rarely"),
        ("PRAGMA integrity_check(?)", "Check rarely"),
        ("ANALYZE", "only after the tables have changed much"),
        ("PRAGMA optimize", "only after the tables have changed much"),
        ("PRAGMA table_info(t)", "Read the schema once"),
        ("ATTACH ? AS other", "attach the file once"),
    ],
)
@pytest.mark.parametrize(("count", "severity"), [(1, "low"), (2, "medium")])
def test_statements_that_maintain_the_database(
    statement: str, fix: str, count: int, severity: str
) -> None:
    found = findings(profile_of(aggregate(statement, SITE, ns=600 * MS, count=count)))
    assert [one.severity for one in found if fix in one.fix] == [severity]


def test_schema_reads_of_many_tables_are_added_up() -> None:
    """None of the 80 statements takes much."""
    for lines, said in ((1, "720 schema reads of"), (80, "720 schema reads in 80 places of")):
        reads = [
            aggregate(
                f"PRAGMA table_info(t{number})",
                (replace(SITE[0], line=number % lines), *SITE[1:]),
                ns=8 * MS,
                count=9,
            )
            for number in range(80)
        ]
        (found,) = findings(profile_of(*reads))
        assert found.evidence[0].startswith(said)
        assert found.gain_ns == 640 * MS


@pytest.mark.parametrize(("checkpoints", "is_found"), [(50, True), (51, False)])
def test_commits_that_sync_because_of_checkpoints_are_no_finding(
    checkpoints: int, is_found: bool
) -> None:
    """Inside one transaction the checkpoints would fail."""
    insert = aggregate("INSERT INTO t VALUES (?)", SITE, ns=MS, count=100)
    checkpoint = aggregate("PRAGMA wal_checkpoint", SITE, ns=10 * MS, count=checkpoints)
    found = findings(profile_of(insert, commits(400), checkpoint))
    assert ("commit_per_write" in {one.category for one in found}) is is_found


def test_a_check_of_each_connection_is_not_the_time_of_connecting() -> None:
    connect = aggregate("(connect)", SITE, ns=10 * MS, operation="connect", count=30)
    check = aggregate("PRAGMA quick_check", SITE, ns=500 * MS, count=30)
    found = {one.category: one for one in findings(profile_of(connect, check))}
    assert found["heavy_query"].gain_ns == 500 * MS
    assert "connection_per_query" not in found or found["connection_per_query"].gain_ns < 50 * MS


def commits(ms: int) -> Aggregate:
    return aggregate("COMMIT", SITE, ns=ms * MS, operation="commit", count=100)


@pytest.mark.parametrize(("file", "is_one"), [(QUERY.file, True), ("/app/other.py", False)])
def test_commits_of_another_finding_are_reported_once(file: str, is_one: bool) -> None:
    """The time is counted once."""
    insert = aggregate("INSERT INTO t VALUES (?)", SITE, ns=MS, count=100)
    elsewhere = commits(400)._replace(path=(replace(QUERY, file=file, line=90), MAIN))
    found = findings(profile_of(insert, commits(400), elsewhere))
    assert [one.category for one in found if one.category == "heavy_query"] == (
        [] if is_one else ["heavy_query"]
    )


UPDATE_ONE = "UPDATE counter SET value = value + ? WHERE name = ?"


@pytest.mark.parametrize(
    ("system", "threads", "each_ns", "rows", "is_reported"),
    [
        ("postgresql", 2, 5 * MS, 1, True),
        ("postgresql", 1, 5 * MS, 1, False),
        ("postgresql", 2, 5 * MS - 1, 1, False),
        ("postgresql", 2, 5 * MS, 3, False),
        ("sqlite", 2, 5 * MS, 1, False),
    ],
)
def test_writes_of_one_row_that_wait_for_each_other(
    system: str, threads: int, each_ns: int, rows: int, is_reported: bool
) -> None:
    """The server locks rows."""
    one = aggregate(UPDATE_ONE, SITE, ns=100 * each_ns, count=100)._replace(rows=100 * rows)
    half = one._replace(count=50, self_ns=one.self_ns // 2, rows=one.rows // 2)
    other = half._replace(thread=Thread(1, "T2"))
    profile = profile_of(*([one] if threads == 1 else [half, other]))
    found = findings(replace(profile, systems={UPDATE_ONE: system}))
    message = [each for each in found if "until its COMMIT" in each.fix]
    assert [each.severity for each in message] == ([Severity.MEDIUM] if is_reported else [])


@pytest.mark.parametrize(("threads", "kind"), [(2, "threads"), (1, "tasks")])
def test_who_changes_the_same_rows_at_the_same_time(threads: int, kind: str) -> None:
    """A driver without threads awaits the server, and the waits of its tasks overlap."""
    rows = [
        aggregate(UPDATE_ONE, SITE, ns=500 * MS, count=100)._replace(
            rows=100, thread=Thread(1, f"T{number}")
        )
        for number in range(threads)
    ]
    waits = (handed(SITE, 100, 5 * MS),) * (threads == 1)
    profile = replace(profile_of(*rows), systems={UPDATE_ONE: "postgresql"}, handoffs=waits)
    (found,) = [each for each in findings(profile) if each.category == "lock_wait"]
    assert found.evidence[-1] == f"concurrent {kind} change single rows with this statement"


@pytest.mark.parametrize(
    ("sql", "shortest_ns", "is_wait"),
    [
        (UPDATE_ONE, 800_000, True),
        (UPDATE_ONE, 800_001, False),
        ("SELECT value FROM counter WHERE name = ? FOR UPDATE", 800_000, True),
        ("SELECT value FROM counter WHERE name = ?", 800_000, False),
    ],
)
def test_a_statement_that_is_fast_at_times_waits_for_a_row(
    sql: str, shortest_ns: int, is_wait: bool
) -> None:
    """It takes 8 ms, and 0.8 ms at its fastest. A missing index would make each execution slow."""
    one = aggregate(sql, SITE, ns=400 * MS, count=50)._replace(rows=50, min_ns=shortest_ns)
    found = findings(replace(profile_of(one), systems={sql: "postgresql"}))
    assert ("lock_wait" in {each.category for each in found}) == is_wait


@pytest.mark.parametrize(
    ("sql", "system", "each_ns", "rows", "words"),
    [
        ("DELETE FROM t WHERE a = ?", "postgresql", 5 * MS, 1, "columns that refer to this table"),
        ("UPDATE t SET b = ? WHERE a = ?", "mysql", 5 * MS, 1, "a trigger"),
        ("SELECT b FROM t WHERE a = ?", "postgresql", 6 * MS, 2, "another type than the column"),
        ("SELECT b FROM t WHERE a = ?", "postgresql", 6 * MS, 3, ""),
        ("SELECT b FROM t WHERE a = ?", "postgresql", 10 * MS, 4, "another type than the column"),
        ("DELETE FROM t WHERE a = ?", "postgresql", 5 * MS - 1, 1, ""),
        ("DELETE FROM t WHERE a = ?", "sqlite", 5 * MS, 1, ""),
    ],
)
def test_a_few_rows_that_take_a_server_long(
    sql: str, system: str, each_ns: int, rows: int, words: str
) -> None:
    """Two rows take 5 ms. One statement for all rows would take as long."""
    one = aggregate(sql, SITE, ns=60 * each_ns, count=60)
    one = one._replace(rows=60 * rows, counted=0, vm_steps=0)  # as of a server
    profile = replace(profile_of(one), systems={sql: system})
    found = find_all(Report(profile), lambda frame, _: replace(frame, line=1), {})
    message = [each for each in found if "less than 1 ms" in each.fix]
    assert [each.severity for each in message] == [Severity.MEDIUM] * bool(words)
    assert all(words in each.fix for each in message)
    assert not words or [each.category for each in found] == ["heavy_query"]


@pytest.mark.parametrize("has_plan", [True, False])
def test_a_plan_is_not_asked_for_again(has_plan: bool) -> None:
    one = aggregate(UPDATE_ONE, SITE, ns=300 * MS, count=50)._replace(rows=50, min_ns=5 * MS)
    profile = replace(profile_of(one), systems={UPDATE_ONE: "postgresql"})
    plan = ServerPlan(((0, "Update on counter"),), 1.0, 2, (), (), None)
    server = ServerFacts("15", {UPDATE_ONE: plan} if has_plan else {})
    (found,) = find_all(Report(profile), lambda *_: None, {}, server=server)
    assert ("--dsn reads the plan" in found.fix) == (not has_plan)


@pytest.mark.parametrize(
    ("read_ms", "read", "count", "is_reported"),
    [
        (60, 10 * MB, 5, True),
        (59, 10 * MB, 5, False),
        (60, 10 * MB - 1, 5, False),
        (60, 10 * MB, 4, False),
    ],
)
def test_pages_that_are_read_again_and_again(
    read_ms: int, read: int, count: int, is_reported: bool
) -> None:
    """They take a fifth of the time of a query that runs several times."""
    work = files(QUERY_TEXT, read_bytes=read, read_ns=read_ms * MS)
    one = aggregate(QUERY_TEXT, SITE, ns=300 * MS, count=count)
    found = findings(replace(profile_of(one), file_work=(work,)))
    assert any("page cache. Enlarge the cache" in each.fix for each in found) == is_reported


@pytest.mark.parametrize(
    ("system", "category", "severity"),
    [("postgresql", "single_inserts", "high"), ("sqlite", "heavy_query", "low")],
)
def test_rows_that_a_loop_sends_one_by_one(system: str, category: str, severity: str) -> None:
    """Each row needs a round trip to the server."""
    insert = "INSERT INTO t VALUES (?)"
    one = aggregate(insert, SITE, ns=300 * MS, count=1000)._replace(rows=1000)
    profile = replace(profile_of(one), systems={insert: system})
    (found,) = find_all(Report(profile), lambda frame, _: replace(frame, line=1), {})
    assert (found.category, str(found.severity)) == (category, severity)
