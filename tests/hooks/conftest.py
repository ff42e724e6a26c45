"""A PostgreSQL server for the drivers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgresql import binaries, server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    if not binaries():
        pytest.skip("PostgreSQL's server is not installed")
    with server() as address:
        yield address
