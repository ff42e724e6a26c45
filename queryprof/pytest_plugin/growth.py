"""Run a test on more and more data, for `@pytest.mark.queryprof(max_growth=1)`."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from queryprof.pytest_plugin.gate import HAS_GROWN, limits_by_name
from queryprof.pytest_plugin.queries import LimitError
from queryprof.testing.growth import SIZES, GrowthError, check_growth

TOGETHER = frozenset({"max_growth", "sizes", "baseline"})

NO_POPULATE = (
    "max_growth: the test needs an argument `populate`, a fixture that returns a function:"
    " populate(n) creates data of size n"
)


def run_on_growing_data(item: pytest.Function) -> bool | None:
    """Call a test function at each size. Returns None if another plugin must call it."""
    __tracebackhide__ = True
    if inspect.iscoroutinefunction(item.obj):
        return None
    limits = limits_by_name(item)
    others = sorted(set(limits) - TOGETHER)
    if others:
        _fail(
            f"queryprof marker of {item.nodeid}: max_growth cannot be combined with"
            f" {', '.join(others)}"
        )
    populate: Any = item.funcargs.get("populate")
    if not callable(populate):
        _fail(NO_POPULATE)
    arguments = {name: item.funcargs[name] for name in inspect.signature(item.obj).parameters}
    try:
        check_growth(
            populate,
            lambda: item.obj(**arguments),
            limits["max_growth"],
            limits.get("sizes", SIZES),
        )
    except GrowthError as error:
        raise LimitError(str(error), pytrace=False) from None  # type: ignore[call-arg]
    finally:
        item.stash[HAS_GROWN] = True
    return True


def _fail(message: str) -> None:
    __tracebackhide__ = True
    raise pytest.fail.Exception(message, pytrace=False)
