"""Causes of heavy statements that their text, their plan and their line show."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import aggregate, profile_of
from findings.test_named_statements import MS, SITE, findings

from queryprof.model import LineTime, Plan

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("statement", "count", "pages", "is_whole"),
    [
        ("SELECT count(*) FROM song", 5, 20, True),
        ("SELECT COUNT(*) AS n FROM song", 5, 20, True),
        ("SELECT count(*) FROM song", 4, 20, False),
        ("SELECT count(*) FROM song", 5, 19, False),
        ("SELECT count(*) FROM song WHERE plays > ?", 5, 20, False),
        ("SELECT count(*), max(plays) FROM song", 5, 20, False),
        ("SELECT count(*) FROM song GROUP BY artist", 5, 20, False),
    ],
)
def test_a_table_that_is_counted_again(
    statement: str, count: int, pages: int, is_whole: bool
) -> None:
    one = aggregate(statement, SITE, ns=500 * MS, count=count)._replace(
        rows=count, vm_steps=9 * count, page_fetches=pages * count, page_fetch_samples=count
    )
    plans = (Plan(statement, "app.db", "SCAN song USING COVERING INDEX song_artist"),)
    write = aggregate("INSERT INTO song VALUES (?)", SITE, ns=MS, count=count)
    found = findings(replace(profile_of(one, write), plans=plans))
    assert any("Keep the number" in each.fix for each in found) == is_whole


def test_a_pragma_without_a_known_fix_is_named() -> None:
    (found,) = findings(profile_of(aggregate("PRAGMA user_version", SITE, ns=600 * MS, count=9)))
    assert (found.severity.value, found.is_unexplained) == ("low", True)


def test_what_a_library_makes_of_the_schema_is_saved_too() -> None:
    """Two of four calls of its line were timed. Each reads the schema of ten tables."""
    read = aggregate("PRAGMA table_info(t)", SITE, ns=100 * MS, count=40)
    timed = LineTime(read.statement, SITE, 2, 20, 6, 300 * MS)
    (found,) = findings(replace(profile_of(read), line_times=(timed,)))
    assert found.gain_ns == 600 * MS


JOINING = (
    "CO-ROUTINE r\n  SETUP\n    SCAN CONSTANT ROW\n  RECURSIVE STEP\n    SCAN r\n"
    "    SEARCH t USING INDEX t_b (b=?)\nSCAN r"
)


@pytest.mark.parametrize(
    ("statement", "gain_ms", "fix"),
    [
        ("SELECT a FROM t UNION SELECT a FROM u", 330, "write UNION ALL"),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", 600, "No known cause"),
        (
            "WITH RECURSIVE r(a) AS (SELECT ? UNION ALL SELECT b FROM t, r) SELECT a FROM r",
            600,
            "write UNION in place of UNION ALL",
        ),
        (
            "WITH RECURSIVE r(a) AS (SELECT ? UNION SELECT b FROM t, r) SELECT a FROM r",
            600,
            "No known cause",
        ),
    ],
)
@pytest.mark.parametrize(("steps", "is_known"), [(1000, True), (999, False)])
def test_unions(statement: str, gain_ms: int, fix: str, steps: int, is_known: bool) -> None:
    one = aggregate(statement, SITE, ns=600 * MS, count=5)._replace(
        rows=500, vm_steps=5 * steps, counted=5
    )
    write = aggregate("INSERT INTO t VALUES (?)", SITE, ns=MS, count=5)
    tree = JOINING if "RECURSIVE" in statement else "SCAN t\nSCAN u"
    profile = replace(profile_of(one, write), plans=(Plan(statement, "app.db", tree),))
    (found,) = [each for each in findings(profile) if each.statement == statement]
    assert (fix if is_known else "No known cause") in found.fix
    assert found.gain_ns == (gain_ms if is_known else 600) * MS


def test_a_recursion_that_counts_numbers_has_one_path() -> None:
    statement = "WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + ? FROM n) SELECT i FROM n"
    one = aggregate(statement, SITE, ns=600 * MS, count=5)._replace(rows=500, vm_steps=5000)
    tree = JOINING.replace("    SEARCH t USING INDEX t_b (b=?)\n", "")
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", tree),))
    assert all("UNION" not in found.fix for found in findings(profile))
