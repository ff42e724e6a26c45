"""`queryprof.check_growth`: run code on more and more data, and limit how its work grows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.analysis.units import shorten
from queryprof.comparing.baseline_figures import TestFigures
from queryprof.core.absence import is_core_absent
from queryprof.core.recorder import muted
from queryprof.growth.growths import (
    Growth,
    Run,
    growths_above,
    growths_of_statements,
    words_in,
)
from queryprof.growth.law import MIN_POINTS
from queryprof.growth.table_rows import Counts, count_table_rows, keys_of_tables
from queryprof.report.text.growth import growth_message
from queryprof.testing.calls import Calls
from queryprof.testing.meter import ENDED, meter

SIZES = (20, 40, 80, 160)


class UnmeasuredError(AssertionError):
    """The growth is unknown."""


def check_growth(
    populate: Callable[..., object],
    run: Callable[[], object],
    max_growth: float = 1,
    sizes: Sequence[int] = SIZES,
) -> None:
    """Run code on more and more data, and fail if its database work grows too fast.

        queryprof.check_growth(make_orders, lambda: client.get("/orders"), max_growth=1)

    The figures are SQLite's VM steps, executions and rows. They have no noise, so a few rows are
    enough, and the result is the same in each run.

    Args:
        populate: makes the data for a number, which gets larger from call to call: `populate(20)`,
            `populate(40)`, ... It may add rows, or replace them. With several parameters, only
            one of them gets larger at a time, which shows the table that the work grows with.
        run: the code to measure. It runs once more before the first measurement, so that caches
            are filled. Statements of all threads count.
        max_growth: the largest exponent: 0 allows no growth, 1 allows work in proportion to the
            data, and n log n.
        sizes: the numbers, at least four, smallest first.

    Raises:
        TypeError, ValueError: an argument is invalid.
        AssertionError: the work of a statement grows faster, or nothing could be measured.
        SessionError: this process cannot be recorded.
    """
    __tracebackhide__ = True
    _refuse_invalid(max_growth, sizes)
    names = _parameters(populate)
    if is_core_absent():
        return
    found = measure_growths(populate, names, run, sizes)
    over = {name: growths_above(its, max_growth) for name, its in found.items()}
    if message := growth_message(over, max_growth):
        raise AssertionError(message)


def measure_growths(
    populate: Callable[..., object],
    names: Sequence[str],
    run: Callable[[], object],
    sizes: Sequence[int],
) -> dict[str, list[Growth]]:
    """Return the growth of each figure, by the parameter of `populate` that got larger.

    Args:
        names: the parameters of `populate`.

    Raises:
        UnmeasuredError: nothing could be measured.
    """
    measured: list[_Measured] = []
    block = meter.open(with_plans=True)
    try:
        for at, (name, numbers) in enumerate(_calls(names, sizes)):
            before = _counts()
            populate(*numbers.values())
            if not at:
                _refuse_coroutine(run())
            after = _counts()
            meter.border()
            block.parts.clear()
            _refuse_coroutine(run())
            meter.border()
            if not block.is_whole:
                raise UnmeasuredError(ENDED)
            calls = Calls(list(block.parts), meter.descriptions, RegressionRules(), test_thread="")
            measured.append(_Measured(name, numbers[name], before, after, calls.figures()))
    finally:
        meter.close(block)
    _refuse_unknown(measured)
    series = {name: _runs([one for one in measured if one.name == name]) for name in names}
    for name, runs in series.items():
        if runs[-1].rows and not any(one.grown for one in runs[1:]):
            raise UnmeasuredError(
                f"growth cannot be checked: populate() added no rows for a larger {name}"
            )
    return {name: growths_of_statements(runs) for name, runs in series.items()}


class _Measured(NamedTuple):
    """One measurement: the parameter that varied, its number, and the tables' rows before and after
    populate().
    """

    name: str
    size: int
    before: Counts
    after: Counts
    figures: TestFigures


def _counts() -> Counts:
    with muted():
        return count_table_rows()


def _refuse_unknown(measured: Sequence[_Measured]) -> None:
    """Raise UnmeasuredError if nothing was executed, or if SQLite's steps are unknown."""
    if not any(one.figures for one in measured):
        raise UnmeasuredError("growth cannot be checked: the code executed no statement")
    tables = {table for one in measured for _, table in one.after}
    for one in measured:
        for statement, figures in one.figures.items():
            if figures.vm_steps is None and words_in(statement) & tables:
                raise UnmeasuredError(
                    f"growth cannot be checked: the VM steps of {shorten(statement, 100)} are"
                    " unknown. Open the connection while queryprof records: in the test, or in a"
                    " fixture of a test with the marker"
                )


def _runs(measured: Sequence[_Measured]) -> list[Run]:
    chosen = keys_of_tables([one.after for one in measured])
    return [
        Run(
            one.size,
            {table: one.after.get(key, 0) for table, key in chosen.items()},
            frozenset(
                table
                for table, key in chosen.items()
                if one.after.get(key, 0) > one.before.get(key, 0)
            ),
            one.figures,
        )
        for one in measured
    ]


def _calls(names: Sequence[str], sizes: Sequence[int]) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the parameter that varies, and the numbers of all parameters. No number ever falls, so
    that `populate` can add rows.
    """
    numbers = dict.fromkeys(names, sizes[0])
    for name in names:
        for size in sizes:
            numbers[name] = size
            yield name, dict(numbers)


def _parameters(populate: Callable[..., object]) -> list[str]:
    """Return the names of the parameters. Raises TypeError without any."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(populate).parameters.values()
    names = [one.name for one in parameters if one.kind in kinds and one.default is one.empty]
    if not names:
        raise TypeError("populate: must take a number, for which it makes the data")
    return names


def _refuse_invalid(max_growth: float, sizes: Sequence[int]) -> None:
    if isinstance(max_growth, bool) or not isinstance(max_growth, int | float) or max_growth < 0:
        raise ValueError(f"max_growth: must be a number of 0 or more, not {max_growth!r}")
    is_rising = all(type(one) is int and one > 0 for one in sizes) and list(sizes) == sorted(
        set(sizes)
    )
    if len(sizes) < MIN_POINTS or not is_rising:
        raise ValueError(f"sizes: must be {MIN_POINTS} or more rising numbers, not {sizes!r}")


def _refuse_coroutine(returned: Any) -> None:
    if inspect.iscoroutine(returned):
        returned.close()
        raise TypeError("run: returned a coroutine; pass a function that runs it")
