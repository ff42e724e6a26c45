"""The rules of proofs, and the savings and costs of changes, with handmade measurements."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from queryprof.planner.judging import AFTER, BEFORE, Measurement
from queryprof.planner.tried_index import TriedIndex, TriedTerm
from queryprof.proof.index_search import ChangeSearch
from queryprof.proof.prove import _prove_query
from queryprof.proof.times import StatementTimes
from queryprof.proof.workload import RecordedStatement, Sample, unrepresentative_reason

pytestmark = pytest.mark.once

MS = 1_000_000
SLOW = Measurement(10.0 * MS, 1000, 100, 5, "rows")
READ = RecordedStatement(
    "SELECT a FROM t WHERE b = ?", 100 * MS, 10, False, samples=(Sample("SELECT 1", (), False),)
)


@dataclass
class Known:
    """A search with known measurements, which has only what a proof needs."""

    after: Measurement
    plans: tuple[str, str] = ("SCAN t", "SEARCH t USING INDEX i (b=?)")
    chosen: list[str] = field(default_factory=lambda: ["i"])
    base: dict[str, list[Measurement]] = field(default_factory=lambda: {READ.statement: []})

    def name(self, step: str) -> str:
        return step

    def plan(self, _: RecordedStatement, copy: str) -> tuple[str, ...]:
        return (self.plans[copy == AFTER],)

    def measured(self, copies: tuple[str, ...], *_: object) -> dict[str, Measurement]:
        both = {BEFORE: SLOW, AFTER: self.after}
        return {copy: both[copy] for copy in copies}


def proof_of(known: Known, query: RecordedStatement = READ) -> Any:
    return _prove_query(cast(ChangeSearch, known), query)


@pytest.mark.parametrize(
    ("after", "is_proved", "doubt"),
    [
        (Measurement(1.0 * MS, 10, 100, 5, "rows"), True, ""),
        (Measurement(1.0 * MS, 1000, 99, 5, "rows"), True, ""),
        (
            Measurement(1.0 * MS, 1000, 100, 5, "rows"),
            False,
            "neither VM steps nor page fetches decreased",
        ),
        (Measurement(1.0 * MS, None, None, 5, "rows"), False, "there are no counters"),
        (Measurement(1.0 * MS, 10, 100, 5, "others"), False, "the rows differ"),
        (Measurement(9.9 * MS, 10, 100, 5, "rows"), False, ""),
    ],
    ids=["fewer steps", "fewer pages", "no less work", "no counters", "other rows", "as slow"],
)
def test_a_proof_is_faster_by_less_work_with_the_same_rows(
    after: Measurement, is_proved: bool, doubt: str
) -> None:
    found = proof_of(Known(after))
    assert (found.is_proved, found.doubt) == (is_proved, doubt)


@pytest.mark.parametrize("writes", [True, False], ids=["a write", "a query"])
def test_a_write_keeps_an_index_that_its_plan_does_not_show(writes: bool) -> None:
    """The difference between its two measurements is not noise."""
    known = Known(Measurement(20.0 * MS, 1500, 200, 5, "rows"), plans=("SEARCH t", "SEARCH t"))
    found = proof_of(known, replace(READ, writes=writes))
    assert (found.after.ns == found.before.ns) != writes


@pytest.mark.parametrize(
    ("writes", "new", "won"),
    [
        (True, 1.1, 0),
        (True, 1.24, 0),
        (True, 1.26, -5.2),
        (True, 0.5, 50),
        (False, 1.1, -2),
        (False, 0.81, 0),
        (False, 0.5, 50),
    ],
)
def test_a_write_that_hardly_loses_loses_nothing(writes: bool, new: float, won: float) -> None:
    query = RecordedStatement("UPDATE", 100 * MS, 20, writes)
    times = StatementTimes([query], {"UPDATE": 1.0 * MS}, {"UPDATE": 1.0 * MS})
    assert times.win_ns({"UPDATE": new * MS}) == pytest.approx(won * MS)


@pytest.mark.parametrize("writes", [True, False])
def test_a_write_with_drawn_values_is_measured(writes: bool) -> None:
    """It has many rows in the recording and one here, but still shows the cost of an index."""
    drawn = replace(READ, writes=writes, rows=5000, samples=(Sample("SELECT 1", (), True),))
    assert bool(unrepresentative_reason(drawn, [replace(SLOW, rows=1)])) != writes


def index(*columns: str) -> TriedIndex:
    return TriedIndex("t", tuple(map(TriedTerm, columns)))


@pytest.mark.parametrize(
    ("tried", "listed", "width", "by_range"),
    [
        (index("state"), "state=?", 1, False),
        (index("state"), "state>?", 1, True),
        (index("state"), "estate=?", 0, False),
        (index("estate", "state"), "estate=? AND state>?", 2, True),
        (index("estate", "state"), "estate=?", 1, False),
        (index("a", "b"), "b=?", 0, False),
        (index("a"), "", 0, False),
        (TriedIndex("t", (TriedTerm("lower(a)", is_expression=True),)), "<expr>=?", 1, False),
        (TriedIndex("t", (TriedTerm("lower(a)", is_expression=True),)), "<expr>>?", 1, True),
    ],
)
def test_what_a_plan_lists_of_an_index(
    tried: TriedIndex, listed: str, width: int, by_range: bool
) -> None:
    assert (tried.compared_term_count(listed), tried.is_searched_by_range(listed)) == (
        width,
        by_range,
    )


@pytest.mark.parametrize(
    ("left_share", "least_ns"), [(1.0, 3 * MS), (0.2, 0.6 * MS), (0.1, 0.5 * MS), (0.001, 0.5 * MS)]
)
def test_a_change_wins_a_share_of_what_is_left_and_of_all(
    left_share: float, least_ns: float
) -> None:
    """The total is 100 ms: it must save a thirtieth of the rest, and half a percent of the total,
    like a finding.
    """
    times = StatementTimes([READ], {READ.statement: 1.0 * MS}, {READ.statement: left_share * MS})
    assert times.min_win_ns() == pytest.approx(least_ns)
