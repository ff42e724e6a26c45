"""Untrusted regions: a region with an invalid fact is skipped, and the others are read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryprof
from conftest import EXAMPLES
from queryprof.core import _core
from queryprof.errors import TraceError
from queryprof.recorder.session import session
from queryprof.region.checked_facts import KINDS, REQUIRED, check_facts
from queryprof.region.identity import region_facts
from queryprof.region.live import ActivityReader
from queryprof.region.region import Region, opened_region
from queryprof.region.region_files import readable_regions

pytestmark = pytest.mark.once

FACTS: dict[str, object] = {
    "pid": 7,
    "parent_pid": 6,
    "start_unix_ns": 10**18,
    "end_unix_ns": 0,
    "host": "here",
    "arguments": ["python", "p.py"],
    "operations": ("execute", "fetchone"),
    "directory": "/tmp/\udcff",
    "trace": "/tmp/x.qprof",
    "unmeasured": None,
    "cells": {},
}
WRONG = [
    *(5, -1, 2**70, 1.5, float("nan"), float("inf"), None, True, b"x", object()),
    *("a\0b", "\ud800", "", [], [1], ["a\0b"], {}, {1: 2}, {"a": 3}, ({},), [[]]),
]
"""Values of wrong types, for most of the facts."""


def test_what_a_recording_writes_is_right(tmp_path: Path) -> None:
    assert check_facts(FACTS) == FACTS
    with queryprof.profile():
        assert session.parts.identity is not None
        facts = region_facts(Region(_core.region()))
        assert set(facts) <= set(KINDS)
        assert set(facts) >= set(REQUIRED)


@pytest.mark.parametrize("name", KINDS)
def test_a_fact_of_another_kind_is_refused(name: str) -> None:
    wrong = [value for value in WRONG if not KINDS[name](value)]
    assert len(wrong) >= len(WRONG) - 6
    for value in wrong:
        with pytest.raises(ValueError, match=name):
            check_facts({**FACTS, name: value})


@pytest.mark.parametrize("name", REQUIRED)
def test_a_fact_that_is_missing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        check_facts({key: value for key, value in FACTS.items() if key != name})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=EXAMPLES)
@given(st.dictionaries(st.sampled_from(sorted(KINDS)) | st.text(), ANYTHING))
def test_any_facts_are_checked_or_refused(changes: dict[str, object]) -> None:
    try:
        found = check_facts({**FACTS, **changes})
    except ValueError:
        return
    assert set(found) <= set(KINDS)
    assert all(KINDS[name](value) for name, value in found.items())


PROGRAM = """
import sqlite3, sys, queryprof
queryprof.install(sys.argv[1])
connection = sqlite3.connect(":memory:")
print("ready", flush=True)
for line in sys.stdin:
    for number in range(int(line)):
        connection.execute("SELECT ?", (number,)).fetchall()
    queryprof.is_installed()
    from queryprof.recorder.session import session
    session.write_pending()
    print("done", flush=True)
"""


@contextmanager
def program(name: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM, name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        try:
            yield running
        finally:
            running.kill()
            for path in list(readable_regions(pids={running.pid})):
                os.unlink(path)


def does(running: subprocess.Popen[str], executions: int) -> None:
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(f"{executions}\n")
    running.stdin.flush()
    assert running.stdout.readline() == "done\n"


def test_a_region_that_becomes_damaged_is_left_out_and_the_others_are_not() -> None:
    with program("good.qprof") as good, program("bad.qprof") as bad:
        watch = ActivityReader(pids={good.pid, bad.pid})
        assert {one.pid for one in watch.read_activity()} == {good.pid, bad.pid}
        does(good, 3)
        does(bad, 3)
        (path,) = readable_regions(pids={bad.pid})
        with opened_region(path) as region:
            table = region.tables["aggregates"]
            with open(path, "r+b") as file:
                file.seek(table.at)
                file.write(b"\xff" * table.row_bytes * region.counts["aggregates"])
        (found,) = watch.read_activity()
        assert found.pid == good.pid
        assert sum(one.calls for one in found.activities if one.operation == "execute") == 3
        assert [one.startswith(path) for one in watch.left_out] == [True]
        does(good, 2)
        (found,) = watch.read_activity()
        assert sum(one.calls for one in found.activities if one.operation == "execute") == 2
        watch.close()


def test_a_region_with_damaged_facts_is_reported() -> None:
    with program("bad.qprof") as bad:
        (path,) = readable_regions(pids={bad.pid})
        with opened_region(path) as region:
            place = region.tables["texts"].at + region["facts"] + 4
        text = repr({**FACTS, "trace": "/tmp/a\0b"}).encode()
        with open(path, "r+b") as file:
            file.seek(place - 4)
            file.write(len(text).to_bytes(4, "little") + text)
        with opened_region(path) as region, pytest.raises(TraceError, match=r"damaged.*trace"):
            region_facts(region)
        assert ActivityReader(pids={bad.pid}).read_activity() == []
