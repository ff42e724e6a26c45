"""Steps of event loops in the core's memory, before a trace sums them up."""

from __future__ import annotations

import asyncio

import pytest

import queryprof
from queryprof.core import _core
from queryprof.region.region import Region

FUNCTIONS = 200
"""More than a part of the index, but fewer than its rows."""


def steps() -> list[tuple[str, int]]:
    """Return the name and count of each row."""
    _core.flush()
    region = Region(_core.region())
    lines = list(region.rows("lines", ("function",)))
    rows = region.rows("steps", ("line", "durations_number"))
    return [(region.text(lines[line][0]), count) for line, count in rows if count]


def test_a_function_has_one_row(recorded: None) -> None:
    """This holds however often it runs. The file would sum several rows and hide them."""

    async def sleeps() -> None:
        for _ in range(5000):
            await asyncio.sleep(0)

    asyncio.run(sleeps())
    found = [(name, count) for name, count in steps() if name.endswith("sleeps")]
    assert len(found) == 1
    assert 5000 <= found[0][1] <= 5001


def test_each_function_has_its_own(recorded: None) -> None:
    """This holds even if other functions use their places in the index."""
    names = {"__name__": __name__}
    exec("\n".join(f"async def f{n}(sleep): await sleep(0)" for n in range(FUNCTIONS)), names)

    async def all_of_them() -> None:
        for _ in range(3):
            await asyncio.gather(*(names[f"f{n}"](asyncio.sleep) for n in range(FUNCTIONS)))

    asyncio.run(all_of_them())
    found = {name: count for name, count in steps() if name.startswith("f") and name[1:].isdigit()}
    assert found == {f"f{n}": 6 for n in range(FUNCTIONS)}


def test_callbacks_that_are_ready_are_counted(recorded: None) -> None:
    """A real loop runs. At each step the callbacks behind it are counted."""
    loop = asyncio.new_event_loop()
    waiting = 50

    def start() -> None:
        for _ in range(waiting):
            loop.call_soon(int)
        loop.call_soon(loop.stop)

    loop.call_soon(start)
    loop.run_forever()
    loop.close()
    _core.flush()
    region = Region(_core.region())
    ((steps_run, sum_waiting, most),) = (
        row for row in region.rows("loops", ("steps", "waiting", "waiting_max")) if row[0]
    )
    # `start`, then the others in order: 50, 49, ..., 1 wait behind them, and none behind the last.
    assert (steps_run, sum_waiting, most) == (waiting + 2, waiting * (waiting + 1) // 2, waiting)


@pytest.fixture
def recorded() -> object:
    queryprof.install("x.qprof")
    yield
    queryprof.uninstall()
