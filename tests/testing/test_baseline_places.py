"""The baseline of a test suite replaces only files, also through links."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from collect.test_places import make_fifo, make_null, make_socket

from queryprof.errors import BaselineError
from queryprof.testing.baseline_file import Baseline, read_baseline, write_baseline

pytestmark = pytest.mark.once


@pytest.mark.parametrize("make", [make_fifo, make_null, make_socket, Path.mkdir])
def test_a_baseline_is_a_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """No device is replaced, and no command waits for a pipe."""
    node = tmp_path / "node"
    make(node)
    before = node.lstat()
    for use in (read_baseline, lambda path: write_baseline(path, Baseline("3", "3.12", {}))):
        with pytest.raises(BaselineError, match="is not a regular file"):
            use(str(node))
    after = node.lstat()
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert os.listdir(tmp_path) == ["node"]


def test_a_baseline_is_written_through_a_link(tmp_path: Path) -> None:
    """A project may keep it elsewhere."""
    (tmp_path / "kept").mkdir()
    link = tmp_path / "baseline.json"
    link.symlink_to("kept/baseline.json")
    write_baseline(str(link), Baseline("3", "3.12", {}))
    assert link.is_symlink()
    assert read_baseline(str(tmp_path / "kept/baseline.json")) == Baseline("3", "3.12", {})
