"""Several writes of one loop, each with a transaction of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.model import Frame
from queryprof.model.files import FileWork, LockHold

pytestmark = pytest.mark.once

MS = 1_000_000


@pytest.mark.parametrize(("others_ms", "first"), [(150, "a"), (250, "a")])
def test_writes_of_one_loop_are_one_finding(others_ms: int, first: str) -> None:
    """One transaction serves all of them. The identity does not follow the times."""
    frames = {name: Frame(name, "/app/queue.py", line) for line, name in enumerate("ab", start=5)}
    writes = [
        aggregate(f"INSERT INTO {name} VALUES (?)", (frames[name], MAIN), ns=ms * MS, count=100)
        for name, ms in (("a", 200), ("b", others_ms))
    ]
    work = tuple(
        FileWork(
            *(one.statement, one.path, "", one.thread, "execute", 100, 0, 0, 0, 300, one.self_ns),
            *(0, 0, 409_600, 0),
        )
        for one in writes
    )
    holds = tuple(
        LockHold(
            *("write", "a.db", one.statement, one.path, "", one.thread, one.statement, one.path),
            *(100, MS, MS, 0, 0, None, 0),
        )
        for one in writes
    )
    found = find_all(
        Report(replace(profile_of(*writes), lock_holds=holds, file_work=work)),
        lambda *_: replace(MAIN, line=3),
        {},
    )
    (one,) = (each for each in found if each.category == "commit_per_write")
    assert one.site.frame == frames[first]
    assert one.gain_ns == pytest.approx((200 + others_ms) * MS * 0.99)
    assert one.evidence[-1].endswith(
        "from 1 other statement in this loop: INSERT INTO b VALUES (?)"
    )
