"""Files that somebody replaces while an agent's question reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from queryprof.agent import answers
from queryprof.agent.answers import Answers
from queryprof.errors import QueryprofError

pytestmark = pytest.mark.once


def test_a_directory_that_becomes_a_link_to_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path was checked, but what it leads to is another file when it is opened."""
    Path("elsewhere").mkdir()
    Path("elsewhere/x.qprof").write_bytes(b"secret")
    Path("inside/traces").mkdir(parents=True)
    Path("inside/traces/x.qprof").write_bytes(b"trace")
    before = os.open

    def replaces(path: str, flags: int, *arguments: Any) -> int:
        Path("inside/traces").rename("inside/older")
        Path("inside/traces").symlink_to("../elsewhere")
        return before(path, flags, *arguments)

    found = Answers("inside")
    monkeypatch.setattr(os, "open", replaces)
    with pytest.raises(QueryprofError, match=r"traces/x\.qprof: is not in "):
        found.findings("traces/x.qprof")


def test_a_file_that_becomes_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("elsewhere").write_bytes(b"secret")
    Path("inside").mkdir()
    Path("inside/x.qprof").write_bytes(b"trace")
    before = os.open

    def replaces(path: str, flags: int, *arguments: Any) -> int:
        Path("inside/x.qprof").unlink()
        Path("inside/x.qprof").symlink_to("../elsewhere")
        return before(path, flags, *arguments)

    found = Answers("inside")
    monkeypatch.setattr(os, "open", replaces)
    with pytest.raises(OSError, match=r"symbolic links"):
        found.findings("x.qprof")


@pytest.mark.parametrize(("size", "said"), [(8, "is no queryprof trace"), (9, "has more than")])
def test_a_file_that_is_too_large(monkeypatch: pytest.MonkeyPatch, size: int, said: str) -> None:
    monkeypatch.setattr(answers, "LARGEST_BYTES", 8)
    Path("x.qprof").write_bytes(b"x" * size)
    with pytest.raises(QueryprofError, match=said):
        Answers(".").findings("x.qprof")
