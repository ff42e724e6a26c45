"""The lists of a comparison are short, and what they leave out is counted."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import queryprof
from queryprof.agent import answers
from queryprof.agent.answers import TraceAnswers

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def _traces() -> None:
    """The second one executes each of three statements more often."""
    for path, times in (("few.qprof", 1), ("many.qprof", 50)):
        with queryprof.profile(path), closing(sqlite3.connect(":memory:")) as connection:
            for name in ("a", "b", "c"):
                for _ in range(times):
                    connection.execute(f"SELECT 1 AS {name}").fetchall()


@pytest.mark.parametrize(
    ("before", "after", "list_of"),
    [("few.qprof", "many.qprof", "worse"), ("many.qprof", "few.qprof", "better")],
)
def test_what_is_left_out_is_counted(
    monkeypatch: pytest.MonkeyPatch, before: str, after: str, list_of: str
) -> None:
    whole = TraceAnswers(".").compare(before, after)
    assert len(whole[list_of]) > 2
    assert whole["left_out"] == 0
    monkeypatch.setattr(answers, "MAX_STATEMENTS", 1)
    short = TraceAnswers(".").compare(before, after)
    assert short[list_of] == whole[list_of][:1]
    shown = len(short["worse"]) + len(short["better"])
    assert shown + short["left_out"] == len(whole["worse"]) + len(whole["better"])
