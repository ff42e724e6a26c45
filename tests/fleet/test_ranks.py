"""A version is slower only if the ranks of its hosts' times also show it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet.fleets import READ, Work, add_host

pytestmark = pytest.mark.once
pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from queryprof.fleet.comparison import compare_versions  # noqa: E402
from queryprof.fleet.duck import Engine, Selection  # noqa: E402  needs DuckDB
from queryprof.fleet.store import directory_place, read_store  # noqa: E402


@pytest.mark.parametrize(("slow_hosts", "verdict"), [(4, "unclear"), (8, "slower")])
@pytest.mark.repeats
def test_half_of_the_hosts_are_no_slower_version(slow_hosts: int, verdict: str) -> None:
    """Four of eight hosts take four times as long. The interval of Welch's test is above 1.07, but
    by the ranks of the hosts it may be chance (p = 0.05).
    """
    for host in range(8):
        for version in ("1", "2"):
            times = 4 if version == "2" and host < slow_hosts else 1
            work = Work(100, 100_000 * times + host)
            add_host(Path("out"), f"{version}-{host}", {READ: work}, version=version)
    engine = Engine(read_store([directory_place("out")]))
    found = compare_versions(engine, Selection(), "1", "2")
    engine.close()
    assert (len(found.slower), found.unclear) == ((1, 0) if verdict == "slower" else (0, 1))
