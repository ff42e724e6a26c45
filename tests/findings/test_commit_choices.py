"""Too many commits: detection and wording, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of
from findings.test_cause_choices import MS, SITE, findings
from findings.test_thresholds import READ

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.report import Report
from queryprof.findings.choices import ONE_BY_ONE, choose_between_findings
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.model import ENDLESS, Frame, Plan, Profile, StackSample, Thread
from queryprof.model.files import FileWork, LockHold

pytestmark = pytest.mark.once


def created(number: int, each_ms: int, syncs: int = 3) -> Profile:
    """Return statements that create tables, each in its own transaction."""
    names = [f"CREATE TABLE t{one}(a)" for one in range(number)]
    work = [
        FileWork(
            name,
            SITE,
            "",
            Thread(1, "MainThread"),
            "execute",
            calls=1,
            lock_waits=0,
            lock_ns=0,
            max_lock_ns=0,
            syncs=syncs,
            sync_ns=each_ms * MS,
            read_bytes=0,
            read_ns=0,
            written_bytes=4096,
            write_ns=0,
        )
        for name in names
    ]
    aggregates = [aggregate(name, SITE, ns=each_ms * MS) for name in names]
    return replace(profile_of(*aggregates), file_work=tuple(work))


@pytest.mark.parametrize(
    ("number", "each_ms", "syncs", "is_reported"),
    [
        (20, 1, 3, True),
        (19, 1, 3, False),
        (20, 1, 0, False),
        (5, 60, 3, True),
        (5, 59, 3, False),
        (4, 90, 3, False),
    ],
)
def test_statements_that_each_are_a_transaction(
    number: int, each_ms: int, syncs: int, is_reported: bool
) -> None:
    """There must be twenty, or five that take a third of the time. They have nothing else in
    common.
    """
    found = findings(created(number, each_ms, syncs))
    others = ["heavy_query"] * (number * each_ms >= 200)
    assert [one.category for one in found] == (["commit_per_write"] if is_reported else others)
    if is_reported:
        assert found[0].evidence[0] == f"{number} statements in this function, {number} executions"


@pytest.mark.parametrize(
    ("number", "each_ms", "is_reported"), [(5, 60, True), (5, 59, False), (4, 90, False)]
)
def test_few_commits_of_one_statement(number: int, each_ms: int, is_reported: bool) -> None:
    write = aggregate("INSERT INTO t VALUES (?)", SITE, ns=MS, count=number)
    commit = aggregate("COMMIT", SITE, ns=number * each_ms * MS, count=number, operation="commit")
    commit = commit._replace(count=number)
    found = {one.category for one in findings(profile_of(write, commit))}
    assert ("commit_per_write" in found) == is_reported


@pytest.mark.parametrize(("commits", "category"), [(20, ""), (19, "single_changes")])
def test_changes_with_their_own_commits_are_a_finding_about_commits(
    commits: int, category: str
) -> None:
    """This holds for commits of up to five changes each."""
    change = aggregate("UPDATE t SET a = ? WHERE id = ?", SITE, ns=90 * MS, count=100)
    commit = aggregate("COMMIT", SITE, ns=MS, count=commits)
    found = findings(profile_of(change._replace(rows=100), commit))
    assert [one.category for one in found] == [category] * bool(category)


@pytest.mark.parametrize(
    ("refused", "severity"),
    [
        (15, Severity.LOW),
        (16, Severity.MEDIUM),
        (85, Severity.MEDIUM),
        (86, Severity.HIGH),
        (96, Severity.HIGH),
        (97, None),
    ],
)
def test_writes_that_were_refused_are_committed_by_nothing(
    refused: int, severity: Severity | None
) -> None:
    """Of 116 writes, some were refused. The evidence counts the writes per commit, and the commits
    with writes.
    """
    change = aggregate("INSERT INTO t VALUES (?)", SITE, ns=90 * MS, count=116)
    commit = aggregate("COMMIT", SITE, ns=290 * MS, count=20)
    found = findings(profile_of(change._replace(errors=refused), commit))
    message = [one.severity for one in found if one.category == "commit_per_write"]
    assert message == [severity] * bool(severity)


@pytest.mark.parametrize(("rows", "severity"), [(499, Severity.HIGH), (500, Severity.LOW)])
def test_a_commit_of_a_batch_is_as_it_may_be(rows: int, severity: Severity) -> None:
    """It lets other connections write in between."""
    change = aggregate("UPDATE t SET a = ?", SITE, ns=90 * MS, count=50)._replace(rows=50 * rows)
    commit = aggregate("COMMIT", SITE, ns=200 * MS, count=50, operation="commit")
    found = findings(profile_of(change, commit))
    (one,) = (one for one in found if one.category == "commit_per_write")
    assert (one.severity, bool(one.doubt)) == (severity, severity is Severity.LOW)


@pytest.mark.parametrize(
    ("commits", "evidence"), [(50, "50 commits"), (39, "each in its own transaction")]
)
def test_what_syncs_before_its_commit_has_one(commits: int, evidence: str) -> None:
    """A write that exceeds the cache syncs before its commit, so syncs alone do not make a
    transaction.
    """
    change = aggregate("UPDATE t SET a = ?", SITE, ns=90 * MS, count=50)
    commit = aggregate("COMMIT", SITE, ns=commits * 4 * MS, count=commits, operation="commit")
    (found,) = (
        one
        for one in findings(replace(profile_of(change, commit), file_work=(synced(50),)))
        if one.category == "commit_per_write" and one.statement == change.statement
    )
    assert evidence in found.evidence[0]


@pytest.mark.parametrize(("syncs", "gain_ms"), [(25, 90), (24, 40)])
def test_syncs_of_checkpoints_are_no_cost_of_commits(syncs: int, gain_ms: int) -> None:
    """A log is synced every thousand pages, however many transactions filled it."""
    change = aggregate("UPDATE t SET a = ?", SITE, ns=200 * MS, count=50)
    profile = replace(profile_of(change), file_work=(synced(syncs),), lock_holds=(own_holds(50),))
    (found,) = (one for one in findings(profile) if one.category == "commit_per_write")
    assert found.gain_ns == pytest.approx(gain_ms * MS * 49 / 50)


def synced(syncs: int) -> FileWork:
    return FileWork(
        "UPDATE t SET a = ?",
        SITE,
        "",
        Thread(1, "MainThread"),
        "execute",
        calls=50,
        lock_waits=0,
        lock_ns=0,
        max_lock_ns=0,
        read_bytes=0,
        read_ns=0,
        written_bytes=4096,
        write_ns=40 * MS,
        syncs=syncs,
        sync_ns=50 * MS,
    )


def own_holds(count: int) -> LockHold:
    """Return holds of the write lock that one execution takes and releases."""
    statement, thread = "UPDATE t SET a = ?", Thread(1, "MainThread")
    return LockHold(
        "write",
        "t.db",
        statement,
        SITE,
        "",
        thread,
        statement,
        SITE,
        count,
        count * MS,
        MS,
        0,
        0,
        count,
        0,
    )


@pytest.mark.parametrize(("sync_ms", "is_reported"), [(23, True), (22, False)])
def test_items_that_are_kept_by_themselves_have_another_fix(
    sync_ms: int, is_reported: bool
) -> None:
    """If a quarter of the commits' time is syncing, the fix is another: a worker's loop never ends, so
    it cannot commit there.
    """
    write = aggregate("INSERT INTO t VALUES (?)", SITE, ns=MS, count=50)
    commit = aggregate("COMMIT", SITE, ns=90 * MS, count=50)
    work = FileWork(
        "COMMIT",
        SITE,
        "",
        Thread(1, "MainThread"),
        "execute",
        calls=50,
        lock_waits=0,
        lock_ns=0,
        max_lock_ns=0,
        read_bytes=0,
        read_ns=0,
        written_bytes=4096,
        write_ns=0,
        syncs=50,
        sync_ns=sync_ms * MS,
    )
    (found,) = findings(replace(profile_of(write, commit), file_work=(work,)))
    assert found.category == "commit_per_write"
    assert ("commit once per item" in found.fix) == is_reported


@pytest.mark.parametrize(
    ("each_us", "category"), [(2_000, "re_prepare"), (2_200, "commit_per_write")]
)
def test_values_in_the_text_hide_no_commits(each_us: int, category: str) -> None:
    """The finding is about the commits or the values in the text, whichever saves more, and
    mentions the other.
    """
    text = "INSERT INTO t VALUES (?)"
    write = aggregate(text, SITE, ns=300 * MS, count=100)
    commit = aggregate("COMMIT", SITE, ns=each_us * 100_000, count=100, operation="commit")
    profile = replace(profile_of(write, commit._replace(count=100)), texts={text: 100})
    (found,) = [one for one in findings(profile) if one.statement == text]
    assert found.category == category
    assert any("100 texts" in line for line in found.evidence)
    assert "as parameters" in found.fix


@pytest.mark.parametrize(("files", "is_one"), [(1, True), (50, True), (51, False)])
def test_a_transaction_is_of_one_file(files: int, is_one: bool) -> None:
    """If most commits go to another file than the commit before, none is unnecessary."""
    text = "INSERT INTO t VALUES (?)"
    write = aggregate(text, SITE, ns=MS, count=100)
    commit = aggregate("COMMIT", SITE, ns=300 * MS, count=100, operation="commit")
    holds = [
        LockHold("write", f"{at}.db", text, SITE, "", Thread(1, "t"), "COMMIT", SITE, *[1] * 7)
        for at in range(files)
    ]
    profile = replace(profile_of(write, commit._replace(count=100)), lock_holds=tuple(holds))
    found = [one for one in findings(profile) if one.category == "commit_per_write"]
    assert bool(found) == is_one
    if found:
        assert found[0].gain_ns <= 301 * MS * (1 - files / 100)


@pytest.mark.parametrize(("files", "is_one"), [(10, True), (11, False)])
def test_a_connection_is_of_one_file(files: int, is_one: bool) -> None:
    opened = aggregate("(connect)", SITE, ns=300 * MS, count=20)._replace(operation="connect")
    read = aggregate(READ, SITE, ns=MS, count=20)
    plans = [Plan(READ, f"{at}.db", "SCAN t") for at in range(files)]
    profile = replace(profile_of(opened, read), plans=tuple(plans))
    found = [one for one in findings(profile) if one.category == "connection_per_query"]
    assert bool(found) == is_one


@pytest.mark.parametrize("category", [*ONE_BY_ONE, "n_plus_one", "full_scan"])
@pytest.mark.parametrize(("gain_ns", "doubt"), [(10, ""), (11, ""), (11, "perhaps")])
def test_what_wins_more_than_parameters(category: str, gain_ns: int, doubt: str) -> None:
    """The finding also mentions that values are in the text. A scan does not depend on the text."""
    texts, other = (
        Finding(
            name,
            Severity.LOW,
            0.1,
            gain,
            "SELECT 1",
            CallSite(MAIN),
            None,
            (name,),
            "fix",
            doubt=why,
        )
        for name, gain, why in (("re_prepare", 10, "x"), (category, gain_ns, doubt))
    )
    wins = (category in ONE_BY_ONE and gain_ns > 10) or (category == "n_plus_one" and not doubt)
    found = choose_between_findings(texts, other)
    assert found.category == (category if wins else "re_prepare")
    assert found.evidence == ((category, "re_prepare") if wins else ("re_prepare",))


@pytest.mark.parametrize(("gain_ns", "first"), [(125, "duplicate_query"), (124, "full_scan")])
def test_a_repeat_comes_before_a_scan_where_it_wins_clearly_more(gain_ns: int, first: str) -> None:
    """It comes first if it saves a quarter more. The scan is then on its card."""
    scan, repeat = (
        Finding(name, Severity.LOW, 0.1, gain, "SELECT 1", CallSite(MAIN), None, (name,), "fix")
        for name, gain in (("full_scan", 100), ("duplicate_query", gain_ns))
    )
    found = choose_between_findings(scan, repeat)
    assert found.category == first
    assert {"full_scan", "duplicate_query"} <= set(found.evidence)


INSERT, CLAIM = (
    "INSERT INTO log VALUES (?)",
    "UPDATE job SET state = ? WHERE id = (SELECT id FROM job LIMIT ?) RETURNING id",
)


def commits_after(write: str, library: str = "") -> Profile:
    """100 writes and 100 commits of 3 ms each, of a run of one second."""
    one = aggregate(write, SITE, ns=10 * MS, count=100)._replace(rows=100)
    commit = aggregate("COMMIT", SITE, ns=300 * MS, count=100, operation="commit")
    called = Frame("execute", f"/venv/site-packages/{library}/core.py", 1, "library")
    sample = StackSample(write, (called, *SITE), 1, 1)
    return replace(profile_of(one, commit), stack_samples=(sample,) if library else ())


@pytest.mark.parametrize(
    ("write", "library", "loop", "words", "severity"),
    [
        (INSERT, "", MAIN, "`with connection:` does both", Severity.HIGH),
        (INSERT, "aiosqlite", MAIN, "`await connection.commit()`", Severity.HIGH),
        (INSERT, "", ENDLESS, "take what is in the queue", Severity.HIGH),
        (CLAIM, "", MAIN, "around the loop", Severity.LOW),
    ],
)
def test_the_words_fit_the_loop(
    write: str, library: str, loop: Frame, words: str, severity: Severity
) -> None:
    profile = commits_after(write, library)
    (found,) = [
        one
        for one in find_all(Report(profile), lambda *_: loop, {})
        if one.category == "commit_per_write"
    ]
    assert words in found.fix
    assert found.severity is severity
    assert ("may claim jobs" in found.doubt) == (write == CLAIM)


UPDATE = "UPDATE t SET a = ? WHERE b = ?"


@pytest.mark.parametrize(
    ("system", "process_ids", "is_against"),
    [("postgresql", (1, 2), True), ("postgresql", (1, 1), False), ("sqlite", (1, 2), False)],
)
def test_processes_that_change_the_same_rows_need_short_transactions(
    system: str, process_ids: tuple[int, int], is_against: bool
) -> None:
    """A server locks the rows of a transaction until its end."""
    parts = [
        one._replace(thread=Thread(process_id, "MainThread"))
        for process_id in process_ids
        for one in (
            aggregate(UPDATE, SITE, ns=MS, count=100),
            aggregate("COMMIT", SITE, ns=300 * MS, count=100, operation="commit"),
        )
    ]
    profile = replace(profile_of(*parts), systems={UPDATE: system})
    (found,) = [one for one in findings(profile) if one.category == "commit_per_write"]
    assert ("longer transaction" in found.doubt) == is_against
    assert ("with connection:" in found.fix) == (system == "sqlite")
