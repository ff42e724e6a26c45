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
from queryprof.sql.clauses import READS, WRITES, verb_of
from queryprof.testing.calls import Calls
from queryprof.testing.meter import ENDED, Block, meter

SIZES = (20, 40, 80, 160)
MAX_GROWTH = 10
INSERTS = frozenset({"INSERT", "REPLACE", "UPDATE", "WITH"})


class GrowthError(AssertionError):
    """The work grows too fast."""


class UnmeasuredError(GrowthError):
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
        populate: creates the data for a size, which gets larger from call to call: `populate(20)`,
            `populate(40)`, ... It may add rows up to the size, or replace all rows. If it has
            several parameters, one size grows at a time, which shows the table that the work grows
            with.
        run: the code to measure. It runs twice at each size, and the second run counts, so that
            caches are filled. Statements of all threads count.
        max_growth: the largest exponent: 0 allows no growth, 1 allows work in proportion to the
            data (and n log n). The measured exponent may be up to 0.1 larger.
        sizes: at least four sizes, smallest first. The largest must be at least twice the
            smallest.

    On systems other than Linux nothing can be recorded: the code runs once, without a check.

    Raises:
        TypeError, ValueError: an argument is invalid.
        AssertionError: the work of a statement grows faster, or nothing could be measured.
        SessionError: this process cannot be recorded.
    """
    __tracebackhide__ = True
    _refuse_invalid(max_growth, sizes)
    names = _parameters(populate)
    if is_core_absent():
        populate(*dict.fromkeys(names, sizes[0]).values())
        run()
        return
    found = measure_growths(populate, names, run, sizes)
    over = {name: growths_above(its, max_growth) for name, its in found.items()}
    if message := growth_message(over, max_growth):
        raise GrowthError(message)


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
    __tracebackhide__ = True
    measured: list[_Measured] = []
    block = meter.open(with_plans=True)
    try:
        for name, numbers in _calls(names, sizes):
            try:
                before, writes = _populated(block, populate, numbers)
                _refuse_coroutine("run", run())
                after = _counts()
                meter.border()
                block.parts.clear()
                _refuse_coroutine("run", run())
                meter.border()
            except Exception as error:
                error.add_note(f"queryprof: after populate{tuple(numbers.values())}")
                raise
            if not block.is_whole:
                raise UnmeasuredError(ENDED)
            calls = _calls_of(block)
            systems = {one: calls.descriptions.system_of(one) for one in calls.figures()}
            measured.append(
                _Measured(name, numbers[name], before, after, writes, calls.figures(), systems)
            )
    finally:
        meter.close(block)
    _refuse_unknown(measured)
    series = {name: _runs([one for one in measured if one.name == name]) for name in names}
    for name, runs in series.items():
        is_seen = any(words_in(one) & set(runs[-1].rows) for one in runs[-1].figures)
        wrote = any(one.writes for one in measured if one.name == name)
        if is_seen and not wrote and not any(one.grown for one in runs[1:]):
            raise UnmeasuredError(
                f"growth cannot be checked: populate() added no rows for a larger {name}"
            )
    return {name: growths_of_statements(runs) for name, runs in series.items()}


def _populated(
    block: Block, populate: Callable[..., object], numbers: dict[str, int]
) -> tuple[Counts, bool]:
    """Make the data. Returns the tables' row counts before, and whether rows were inserted."""
    before = _counts()
    meter.border()
    block.parts.clear()
    _refuse_coroutine("populate", populate(*numbers.values()))
    meter.border()
    figures = _calls_of(block).figures(with_sites=False)
    writes = any(verb_of(text) in INSERTS and one.rows for text, one in figures.items())
    return before, writes


def _calls_of(block: Block) -> Calls:
    return Calls(list(block.parts), meter.descriptions, RegressionRules(), test_thread="")


class _Measured(NamedTuple):
    """One measurement.

    Attributes:
        name, size: the parameter of populate() that varied, and its number.
        before, after: the tables' rows before and after populate().
        writes: whether populate() inserted rows.
        systems: the database system of each statement.
    """

    name: str
    size: int
    before: Counts
    after: Counts
    writes: bool
    figures: TestFigures
    systems: dict[str, str]


def _counts() -> Counts:
    with muted():
        return count_table_rows()


def _refuse_unknown(measured: Sequence[_Measured]) -> None:
    """Raise UnmeasuredError if nothing was executed, or if SQLite's steps are unknown."""
    if not any(one.figures for one in measured):
        raise UnmeasuredError("growth cannot be checked: the code executed no statement")
    for one in measured:
        for statement, figures in one.figures.items():
            is_counted = verb_of(statement) in READS | WRITES and figures.executions
            if figures.vm_steps is None and is_counted and one.systems[statement] == "sqlite":
                raise UnmeasuredError(
                    f"growth cannot be checked: the VM steps of {shorten(statement, 100)} are"
                    " unknown. Its connection was opened before the recording (open it in the"
                    " test, or use the marker), has a trace callback, or its driver has no counters"
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
        raise TypeError("populate: must take a number, the size of the data to create")
    return names


def _refuse_invalid(max_growth: float, sizes: Sequence[int]) -> None:
    is_number = isinstance(max_growth, int | float) and not isinstance(max_growth, bool)
    if not is_number or not 0 <= max_growth <= MAX_GROWTH:
        raise ValueError(f"max_growth: must be a number from 0 to {MAX_GROWTH}, not {max_growth!r}")
    is_list = isinstance(sizes, list | tuple) and all(type(one) is int for one in sizes)
    is_rising = is_list and len(sizes) >= MIN_POINTS and list(sizes) == sorted(set(sizes))
    if not is_rising or sizes[0] <= 0 or sizes[-1] < 2 * sizes[0]:
        raise ValueError(
            f"sizes: must be {MIN_POINTS} or more rising numbers, the last at least twice the"
            f" first, not {sizes!r}"
        )


def _refuse_coroutine(name: str, returned: Any) -> None:
    if inspect.iscoroutine(returned):
        returned.close()
        raise TypeError(f"{name}: returned a coroutine; pass a function that runs it")
    if inspect.isgenerator(returned):
        raise TypeError(f"{name}: returned a generator; pass a function that reads it")
