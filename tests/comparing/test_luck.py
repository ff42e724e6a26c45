"""Luck and the verdicts on times: equal programs, one slower statement, and many statements."""

from __future__ import annotations

import random

import pytest
from analysis.by_hand import aggregate, profile_of
from comparing.test_comparison import change_of

from queryprof.comparing.comparison import compare, regressions
from queryprof.comparing.comparison_result import StatementChange, Verdict
from queryprof.model import Profile

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("runs", "statements", "comparisons"),
    [
        (6, 10, 30),
        pytest.param(6, 30, 200, marks=pytest.mark.slow),
        pytest.param(10, 30, 200, marks=pytest.mark.slow),
    ],
)
def test_equal_programs_are_hardly_ever_worse(runs: int, statements: int, comparisons: int) -> None:
    """Some statement always looks slower. That is luck."""
    draw = random.Random(1)

    def run() -> Profile:
        speed = draw.gauss(1, 0.1)  # of the machine
        times = (int(1e6 * speed * draw.gauss(1, 0.2)) for _ in range(statements))
        return profile_of(*(aggregate(f"SELECT {n}", ns=ns) for n, ns in enumerate(times)))

    failed = 0
    for _ in range(comparisons):
        before, after = ([run() for _ in range(runs)] for _ in range(2))
        failed += bool(regressions(compare(before, after), ("time",)))
    assert failed <= comparisons / 50


def test_one_slower_statement_of_many_is_found() -> None:
    """With more runs, it is found although the whole run is not slower."""
    draw = random.Random(1)

    def run(factor: float) -> Profile:
        times = [int(1e6 * draw.gauss(1, 0.05)) for _ in range(30)]
        times[3] = int(times[3] * factor)
        return profile_of(*(aggregate(f"SELECT {n}", ns=ns) for n, ns in enumerate(times)))

    for runs, expected in ((6, []), (10, ["SELECT 3"])):
        comparison = compare([run(1) for _ in range(runs)], [run(1.5) for _ in range(runs)])
        worse = regressions(comparison, ("time",))
        assert [one.statement for one in worse if isinstance(one, StatementChange)] == expected


def test_statements_explain_a_slower_run() -> None:
    """Six runs suffice if the whole run got slower as well."""
    noise = [0, 40, -40, 20, -20, 10]
    before = [profile_of(aggregate("S", ns=1000 + n), aggregate("T", ns=500 - n)) for n in noise]
    after = [profile_of(aggregate("S", ns=2000 + n), aggregate("T", ns=500 - n)) for n in noise]
    found = compare(before, after)
    assert change_of(found, "S", "database_ns").verdict == Verdict.WORSE
    assert change_of(found, "T", "database_ns").verdict != Verdict.WORSE


@pytest.mark.parametrize(("steps", "verdict"), [(99, Verdict.SAME), (101, Verdict.WORSE)])
def test_a_few_more_vm_steps_do_not_matter(steps: int, verdict: Verdict) -> None:
    """Less than a thousandth of the run's steps: SQLite reads a larger schema."""
    before = profile_of(aggregate("S")._replace(vm_steps=100_000))
    after = profile_of(aggregate("S")._replace(vm_steps=100_000 + steps))
    found = compare([before], [after])
    assert change_of(found, "S", "vm_steps").verdict == verdict
    assert bool(regressions(found, ("vmsteps",))) == (verdict is Verdict.WORSE)
