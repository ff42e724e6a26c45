"""Files that somebody replaces while an agent's question reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from queryprof.agent import answers
from queryprof.agent.answers import TraceAnswers
from queryprof.errors import QueryprofError

pytestmark = pytest.mark.once


def before_it_is_opened(monkeypatch: pytest.MonkeyPatch, path: str, target: str) -> None:
    """Replace a file or directory by a symbolic link when the next file is opened."""
    before = os.open

    def replaces(name: str, flags: int, *arguments: Any) -> int:
        os.rename(path, "moved")
        os.symlink(target, path)
        return before(name, flags, *arguments)

    monkeypatch.setattr(os, "open", replaces)


@pytest.fixture
def answers_inside() -> TraceAnswers:
    """Return answers about a directory that has another directory next to it."""
    for place in ("elsewhere", "inside/traces"):
        Path(place).mkdir(parents=True)
        Path(place, "x.qprof").write_bytes(b"secret")
    return TraceAnswers("inside")


def test_a_directory_that_becomes_a_link_to_elsewhere(
    answers_inside: TraceAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path was checked, but it leads to another file when it is opened."""
    before_it_is_opened(monkeypatch, "inside/traces", "../elsewhere")
    with pytest.raises(QueryprofError, match=r"traces/x\.qprof: not in "):
        answers_inside.findings("traces/x.qprof")


def test_a_file_that_becomes_a_link(
    answers_inside: TraceAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_it_is_opened(monkeypatch, "inside/traces/x.qprof", "../../elsewhere/x.qprof")
    with pytest.raises(OSError, match=r"symbolic links"):
        answers_inside.findings("traces/x.qprof")


@pytest.mark.parametrize(("size", "message"), [(8, "not a queryprof trace"), (9, "larger than")])
def test_a_file_that_is_too_large(monkeypatch: pytest.MonkeyPatch, size: int, message: str) -> None:
    monkeypatch.setattr(answers, "MAX_BYTES", 8)
    Path("x.qprof").write_bytes(b"x" * size)
    with pytest.raises(QueryprofError, match=message):
        TraceAnswers(".").findings("x.qprof")
