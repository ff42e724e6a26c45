"""A table, and functions that return the recorded plans."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from queryprof.core import _core
from queryprof.model import Plan
from queryprof.recorder.session import session
from queryprof.region.changes import ChangeReader
from queryprof.region.descriptions import Descriptions

SELECT = "SELECT b FROM t WHERE a = ?"


@contextmanager
def draining() -> Iterator[Callable[[], list[Plan]]]:
    """Record into memory. Yield a function that returns the plans recorded since its last call."""
    session.start()
    _core.set_plan_time_share(1.0)
    changes, descriptions = ChangeReader(), Descriptions()
    try:
        yield lambda: descriptions.plans(changes.take(with_plans=True))
    finally:
        session.stop()


def trees(plans: list[Plan], statement: str = SELECT) -> set[str]:
    return {plan.tree for plan in plans if plan.statement == statement}


def with_table(path: str = ":memory:") -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE IF NOT EXISTS t (a, b)")
    return connection
