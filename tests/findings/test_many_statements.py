"""The work of finding causes among many statements in one loop."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from analysis.by_hand import aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.model import Frame
from queryprof.program.sources import Sources

if TYPE_CHECKING:
    from types import FrameType

pytestmark = pytest.mark.once

MAX_CALLS_PER_PAIR = 60
"""The most Python calls per pair of statements. There were 34 for 100 statements and 24 for 200.
There were 570 before the loop around each statement and the assignments in it were kept.
"""


def calls_of_analysis(folder: Path, statements: int) -> int:
    """Return the number of Python calls to find the causes in a loop of this many statements."""
    reads = [
        f"        r{n} = db.execute('SELECT a AS c{n} FROM t WHERE b = ?', (n,)).fetchall()"
        for n in range(statements)
    ]
    text = "\n".join(["def work(db):", "    for n in range(20):", *reads, ""])
    file = folder / f"work_{statements}.py"
    file.write_text(text)
    paths = {f"SELECT a AS c{n} FROM t WHERE b = ?": n + 3 for n in range(statements)}
    profile = profile_of(
        *(
            aggregate(statement, (Frame("work", str(file), line),), ns=10**7, count=20)._replace(
                rows=20
            )
            for statement, line in paths.items()
        )
    )
    sources = Sources({str(file): {sha256(text.encode()).hexdigest()}})
    calls = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        found = find_all(Report(profile), sources.loop_at, {}, lines=sources)
    finally:
        sys.setprofile(None)
    assert len(found) == statements
    return calls


@pytest.mark.parametrize("statements", [100, 200])
def test_each_pair_of_statements_costs_few_calls(tmp_path: Path, statements: int) -> None:
    assert calls_of_analysis(tmp_path, statements) <= MAX_CALLS_PER_PAIR * statements**2
