"""A file is written completely or not at all."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from queryprof.errors import QueryprofError
from queryprof.output_file import write_output

pytestmark = pytest.mark.once


def test_nothing_is_left_where_there_is_no_room() -> None:
    Path("page.html").write_bytes(b"before MARK")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(QueryprofError, match=r"page\.html: cannot be written: File too large"):
            write_output("page.html", b"x" * 5000, b"MARK")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir() == ["page.html"]
    assert Path("page.html").read_bytes() == b"before MARK"
