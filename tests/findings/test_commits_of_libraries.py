"""Commits that a library makes, and the writes that they save."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of
from findings.line_profiles import MS, SITE, WRITE

import queryprof
from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.report import Report
from queryprof.findings.choices import choose_between_findings
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.lookup import findings_of
from queryprof.model import Frame, LineTime, StackSample

pytestmark = pytest.mark.once


def commits(library: str, line_ms: int) -> Finding:
    """Return the finding about 100 writes and commits in a line, each commit of 3 ms."""
    write = aggregate(WRITE, SITE, ns=10 * MS, count=100)._replace(rows=100)
    commit = aggregate("COMMIT", SITE, ns=300 * MS, count=100, operation="commit")
    called = Frame("enqueue", f"/venv/site-packages/{library}/storage.py", 1, "library")
    profile = replace(
        profile_of(write, commit),
        stack_samples=tuple(
            StackSample(one.statement, (called, *SITE), 1, 1) for one in (write, commit)
        ),
        line_times=tuple(
            LineTime(one.statement, SITE, 100, 100, 100, 100 * line_ms * MS)
            for one in (write, commit)
        ),
    )
    found = find_all(Report(profile), lambda *_: MAIN, {})
    return next(one for one in found if one.category == "commit_per_write")


def test_an_unknown_library_s_other_work_is_not_saved() -> None:
    """The line may also wait, such as for a worker."""
    of_library, of_mapper = commits("huey", 8), commits("sqlalchemy", 8)
    assert of_library.gain_ns == pytest.approx(297 * MS)
    assert of_mapper.gain_ns == pytest.approx(792 * MS)
    assert of_library.fix.startswith("huey commits here.")


def test_a_library_s_line_without_a_line_of_the_program() -> None:
    """For example, in a thread of the library."""
    frames = [
        Frame(name, "/venv/site-packages/huey/storage.py", line, "library")
        for name, line in (("sql", 846), ("db", 832))
    ]
    write = aggregate(WRITE, (frames[0],), ns=10 * MS, count=100)._replace(rows=100)
    commit = aggregate("COMMIT", (frames[1], frames[0]), ns=300 * MS, count=100, operation="commit")
    profile = replace(
        profile_of(write, commit),
        stack_samples=tuple(StackSample(one.statement, one.path, 1, 1) for one in (write, commit)),
    )
    found = find_all(Report(profile), lambda *_: None, {})
    (one,) = (each for each in found if each.category == "commit_per_write")
    assert one.fix.startswith("huey commits here.")


def test_writes_of_another_loop_are_not_in_the_commits(tmp_path: Path) -> None:
    with queryprof.profile() as recording, closing(sqlite3.connect(tmp_path / "a.db")) as db:

        def rename() -> None:
            for number in range(30):
                db.execute("BEGIN")
                db.execute("UPDATE item SET name = ? WHERE id = ?", ("x", number))
                db.execute("COMMIT")

        def add() -> None:
            for number in range(300):
                db.execute("BEGIN")
                db.execute("INSERT INTO item (name) VALUES (?)", (f"n{number}",))
                db.execute("COMMIT")

        db.isolation_level = None
        db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)")
        add()
        rename()
    found = findings_of(Report(recording.profile), ())
    made = {one.evidence[0]: one.doubt for one in found if one.category == "commit_per_write"}
    assert made == {"30 writes, 30 commits": "", "300 writes, 300 commits": ""}


@pytest.mark.parametrize(("write_ns", "is_named"), [(199, False), (200, True)])
def test_the_rest_of_a_write_is_named_if_it_takes_longer(write_ns: int, is_named: bool) -> None:
    made, write = (
        Finding(name, Severity.LOW, 0.1, gain, "UPDATE t", CallSite(MAIN), None, (name,), "fix")
        for name, gain in (("commit_per_write", 100), ("heavy_query", write_ns))
    )
    found = choose_between_findings(made, write)
    assert found.category == "commit_per_write"
    words = f"without its commits, the statement takes {write_ns - 100} ns"
    assert (words in found.evidence) == is_named
