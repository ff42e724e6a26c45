"""Comparisons of a computed value beside comparisons that another index would serve."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.defeated import UNKNOWN_MATCHES
from queryprof.findings.finding import Severity
from queryprof.findings.lookup import findings_of

pytestmark = pytest.mark.once

COUNT = (
    "SELECT site, count(*) FROM job WHERE status = ? AND strftime('%Y', updated) > ? GROUP BY site"
)


@pytest.mark.parametrize(
    ("index", "is_defeated"), [("CREATE INDEX job_updated ON job (updated)", True), ("", False)]
)
def test_a_function_around_a_column_with_an_index(
    tmp_path: Path, index: str, is_defeated: bool
) -> None:
    """The planner proposes an index on the status, but nothing shows that it finds few rows."""
    database = tmp_path / "jobs.db"
    rows = ((n % 3, f"site {n % 4}", f"20{n % 90 + 10}-01-01") for n in range(20_000))
    with queryprof.profile() as recording, closing(sqlite3.connect(database)) as db:
        db.execute("CREATE TABLE job (status INTEGER, site TEXT, updated TEXT)")
        db.execute(index)
        db.executemany("INSERT INTO job VALUES (?, ?, ?)", rows)
        for number in range(40):
            db.execute(COUNT, (number % 3, f"2090 {number}")).fetchall()
        db.commit()
    found = findings_of(Report(recording.profile), ())
    (one,) = (one for one in found if "strftime" in one.statement and one.gain_ns)
    assert (one.category == "index_defeated") == is_defeated
    if is_defeated:
        assert (one.severity, one.doubt, one.code) == (Severity.MEDIUM, UNKNOWN_MATCHES, "")
        assert "job has the index job_updated (updated)" in one.evidence[-1]
