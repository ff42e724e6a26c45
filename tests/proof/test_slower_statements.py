"""The search notices and reports an index that makes other statements slower."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from proof.counted_time import counted, proved

import queryprof as api
from queryprof.analysis.report import Report
from queryprof.findings.lookup import findings_of
from queryprof.findings.proved import with_proofs
from queryprof.model.advice import Advice, Cost, Proof
from queryprof.proof.times import StatementTimes
from queryprof.proof.workload import RecordedStatement
from queryprof.report.text.advice import advice_cautions, proof_line

pytestmark = pytest.mark.once

LIKE = "SELECT id FROM orders WHERE status LIKE ? LIMIT 3"
TOTAL = "SELECT sum(total) FROM orders WHERE status = ?"
MS = 1_000_000


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "orders.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, total REAL)")
        rows = [("open" if one % 50 == 0 else "done", one) for one in range(20_000)]
        db.executemany("INSERT INTO orders (status, total) VALUES (?, ?)", rows)
        db.commit()
    return path


def advice_on(
    database: Path, monkeypatch: pytest.MonkeyPatch, totals: int, likes: int
) -> tuple[Advice, Report]:
    """LIKE stops at the first rows of the table. With an index on the status it reads almost all of
    that.
    """
    monkeypatch.setenv("QUERYPROF_PARAMETERS", "1")
    with api.profile() as recording, closing(sqlite3.connect(database)) as db:
        for _ in range(totals):
            db.execute(TOTAL, ("open",)).fetchall()
        for _ in range(likes):
            db.execute(LIKE, ("op%",)).fetchall()
    report = Report(counted(recording.profile))
    return proved(report, str(database)), report


@pytest.mark.parametrize(
    ("totals", "likes", "is_made"), [(20, 20, False), (200, 20, True), (20, 0, True)]
)
@pytest.mark.repeats
def test_an_index_is_made_where_it_wins_more_than_it_loses(
    database: Path, monkeypatch: pytest.MonkeyPatch, totals: int, likes: int, is_made: bool
) -> None:
    advice, report = advice_on(database, monkeypatch, totals, likes)
    assert bool(advice.changes) == is_made
    slower = [one for one in advice.proofs if one.is_slower]
    assert bool(slower) == (is_made and bool(likes))
    if is_made:
        assert sum(change.win_ns for change in advice.changes) == pytest.approx(
            advice.before_ns - advice.after_ns, rel=0.01
        )
        assert all("slower: " in proof_line(one) for one in slower)
        return
    (one,) = advice.outweighed
    assert (one.statements, len(one.slower)) == ((TOTAL,), 1)
    assert one.win_ns < one.loss_ns
    assert any(
        "would slow down other statements by" in message for message in advice_cautions(advice)
    )
    (finding,) = (
        each
        for each in with_proofs(findings_of(report, [str(database)]), advice)
        if each.statement == TOTAL
    )
    assert finding.fix.startswith("An index would save ")


def times(
    recorded_ns: int = 100 * MS, base_ns: float = 1 * MS, executions: int = 20
) -> StatementTimes:
    query = RecordedStatement("SELECT", recorded_ns, executions, writes=False)
    return StatementTimes([query], {"SELECT": base_ns}, {"SELECT": base_ns})


@pytest.mark.parametrize(
    ("new_ns", "won_ns", "measured_ns"),
    [
        (0.5 * MS, 50 * MS, 10 * MS),  # a part of the recorded rows
        (0.81 * MS, 0, 3.8 * MS),
        (3 * MS, -40 * MS, -40 * MS),  # as it is here
    ],
)
def test_what_is_won_is_of_the_recorded_time_and_what_is_lost_is_not(
    new_ns: float, won_ns: float, measured_ns: float
) -> None:
    one = times()
    assert one.win_ns({"SELECT": new_ns}) == pytest.approx(won_ns)
    assert one.measured_win_ns({"SELECT": new_ns}) == pytest.approx(measured_ns)


@pytest.mark.parametrize(("new_ns", "is_slower"), [(1.26 * MS, True), (1.25 * MS, False)])
def test_a_statement_is_slower_by_a_quarter(new_ns: float, is_slower: bool) -> None:
    assert bool(times().slower({"SELECT": new_ns})) == is_slower


@pytest.mark.parametrize(
    ("after", "uses", "is_slower"),
    [
        (Cost(126.0, 20.0, None), ("i",), True),
        (Cost(125.0, 20.0, None), ("i",), False),
        (Cost(126.0, 10.0, None), ("i",), False),
        (Cost(126.0, None, None), ("i",), True),
        (Cost(126.0, 20.0, None), (), False),
    ],
)
def test_a_slower_statement_does_more_work(
    after: Cost, uses: tuple[str, ...], is_slower: bool
) -> None:
    proof = Proof("SELECT", 10, 5000, Cost(100.0, 10.0, None), after, uses, False, "", False)
    assert proof.is_slower == is_slower


@pytest.mark.parametrize(("fetches", "is_slower"), [(1001.0, True), (1000.0, False)])
def test_more_page_fetches_are_more_work(fetches: float, is_slower: bool) -> None:
    """A scan in the order of an index sorts nothing, but looks up each row."""
    before, after = Cost(100.0, 10.0, 1000.0), Cost(130.0, 9.0, fetches)
    proof = Proof("SELECT", 10, 5000, before, after, ("i",), False, "", False)
    assert proof.is_slower == is_slower
    assert proof.after_ns == 5000 + 10 * (after.ns - 100.0)
