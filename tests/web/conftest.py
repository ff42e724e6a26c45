"""Applications with a badge, served by their own processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from report.conftest import chromium
from web.applications import APPLICATIONS

from queryprof.testing.meter import meter
from queryprof.web import badge_requests as requests

__all__ = ["chromium", "serving"]

Serving = Callable[..., AbstractContextManager[str]]


@pytest.fixture(autouse=True)
def _no_requests_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """All badges of a process list the same requests."""
    monkeypatch.setattr(requests, "requests", requests.RecentRequests())


@pytest.fixture(autouse=True)
def _no_block_is_left() -> Iterator[None]:
    yield
    for block in tuple(meter._blocks):
        meter.close(block)


@pytest.fixture
def serving() -> Serving:
    """Serve an application. The value is its address."""

    @contextmanager
    def serve(name: str, on: str = "1") -> Iterator[str]:
        if not find_spec(name):
            pytest.skip(f"no {name} here")
        application, server = APPLICATIONS[name]
        Path("web.py").write_text(application)
        Path("server.py").write_text(server)
        environment = {**os.environ, "QUERYPROF_BADGE": on}
        with subprocess.Popen(
            [sys.executable, "server.py"], stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            try:
                yield f"http://127.0.0.1:{int(process.stdout.readline())}"
            finally:
                process.kill()

    return serve
