"""A slow query without parameters that runs a few times."""

from __future__ import annotations

import pytest
from analysis.by_hand import aggregate, profile_of
from findings.test_cause_choices import MS, SITE, findings

from queryprof.model import Aggregate

pytestmark = pytest.mark.once

EQUAL = "SELECT count(*) FROM log"
WRITE = aggregate("INSERT INTO log VALUES (?)", SITE, ns=MS, count=1)


@pytest.mark.parametrize(
    ("statement", "count", "ms", "further", "gain_ms"),
    [
        (EQUAL, 3, 600, (), 400),
        (EQUAL, 3, 300, (), 200),
        (EQUAL, 3, 297, (), 0),  # less than a fifth of the run
        (EQUAL, 1, 600, (), 0),
        (EQUAL, 3, 600, (WRITE,), 0),
        ("SELECT count(*) FROM log WHERE day = ?", 3, 600, (), 0),
        ("SELECT random()", 3, 600, (), 0),
    ],
)
def test_few_executions_are_repeats_if_they_are_slow_and_equal(
    statement: str, count: int, ms: int, further: tuple[Aggregate, ...], gain_ms: int
) -> None:
    one = aggregate(statement, SITE, ns=ms * MS, count=count)
    found = [each for each in findings(profile_of(one, *further)) if each.statement == statement]
    repeats = [each for each in found if each.category == "duplicate_query"]
    assert [(each.gain_ns, each.severity) for each in repeats] == (
        [(gain_ms * MS, "medium")] if gain_ms else []
    )
