"""How a workload grows, for a terminal: growth laws and time forecasts of its statements."""

from __future__ import annotations

from itertools import pairwise
from typing import TextIO

from rich.console import RenderableType

from queryprof.analysis.units import counted, duration, shorten
from queryprof.growth.composed import ComposedRuns
from queryprof.growth.growths import ALL, VM_STEPS, Growth, growths_of_statements, words_in
from queryprof.report.terminal.console import (
    Text,
    borderless_table,
    console_for,
    heading_line,
    print_parts,
)
from queryprof.report.text.causes import site_lines
from queryprof.report.text.growth import TIMES, growth_in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queryprof.comparing.baseline_figures import TestFigures

FACTORS = (2, 10, 100)
MAX_STATEMENTS = 10
SITES = 1


def print_growth(
    found: ComposedRuns,
    times_ns: Mapping[str, int],
    recorded: TestFigures,
    left_out: int,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print the statements with the longest forecast times, and their growth laws.

    Args:
        times_ns: the recorded time of each statement.
        recorded: the recorded figures. If a statement takes a different number of VM steps in the
            replay (for example, because of a new index), its time is scaled in proportion.
        left_out: the number of executions that could not be replayed.
    """
    console = console_for(file, width)
    now_ns = _times_now(found, times_ns, recorded)
    grown = [
        one
        for one in growths_of_statements(found.runs)
        if one.figure == VM_STEPS and one.statement != ALL
    ]
    grown.sort(key=lambda one: (-_forecast_ns(one, now_ns, FACTORS[-1]), one.statement))
    parts: list[RenderableType] = [heading_line("Forecast of the database time")]
    table = borderless_table("")
    for name in ("", "now", *(f"{factor} times the data" for factor in FACTORS)):
        table.add_column(name, justify="right" if name else "left")
    for at, one in enumerate(grown[:MAX_STATEMENTS], 1):
        table.add_row(str(at), *_times(one, now_ns))
    parts.append(table)
    for at, one in enumerate(grown[:MAX_STATEMENTS], 1):
        parts.append(Text(f"{at:>3}  {shorten(one.statement, 300)}", overflow="fold"))
        lines = [*_lines(one, found), *_plan_changes(found, one.statement)]
        parts += [Text(f"     {line}", overflow="fold") for line in lines]
    parts += [Text(line, overflow="fold") for line in _notes(found, len(grown), left_out)]
    print_parts(console, parts)


def _times_now(
    found: ComposedRuns, times_ns: Mapping[str, int], recorded: TestFigures
) -> dict[str, float]:
    """Return the time of each statement on the database that was replayed."""
    replayed = found.runs[-1].figures
    times: dict[str, float] = dict(times_ns)
    for one in replayed.keys() & recorded.keys():
        before, now = recorded[one].vm_steps, replayed[one].vm_steps
        if before and now and one in times:
            times[one] *= now / before
    return times


def _forecast_ns(one: Growth, times_ns: Mapping[str, float], factor: float) -> float:
    return times_ns.get(one.statement, 0) * one.law.times_as_much(factor)


def _times(one: Growth, times_ns: Mapping[str, float]) -> Iterator[str]:
    for factor in (1, *FACTORS):
        yield duration(_forecast_ns(one, times_ns, factor))


def _lines(one: Growth, found: ComposedRuns) -> Iterator[str]:
    of = one.tables[0] if len(one.tables) == 1 else "the data"
    values = ", ".join(f"{value:,}" for value in one.values)
    grown = {table for run in found.runs[1:] for table in run.grown}
    words = words_in(one.statement)
    if one.law.is_constant and "from" in words and not words & grown:
        yield "its growth is unknown: its tables have the same size in each copy"
    else:
        yield f"VM steps {growth_in_words('grow', one.law, of)}: {values}"
    if one.parent:
        yield f"it runs {TIMES[one.times]} per row of {shorten(one.parent, 200)}"
    for site in one.last.sites[:SITES]:
        yield site_lines(site, with_executions=False)[0]


def _plan_changes(found: ComposedRuns, statement: str) -> Iterator[str]:
    """Yield a line for each share of the rows at which a statement's plan changes."""
    for before, after in pairwise(found.runs):
        plans = [
            run.figures[statement].plans for run in (before, after) if statement in run.figures
        ]
        if len(plans) == 2 and plans[0] != plans[1]:
            share = found.runs[-1].size // after.size
            where = f"1/{share} of the rows" if share > 1 else "all rows"
            steps = "; ".join(step.strip() for plan in plans[1] for step in plan)
            yield f"with {where} its plan changes to {steps}"


def _notes(found: ComposedRuns, shown: int, left_out: int) -> Iterator[str]:
    sizes = ", ".join(f"1/{found.runs[-1].size // run.size}" for run in found.runs[:-1])
    yield (
        f"Measured on {sizes} and all of the rows. The times are estimates: the recorded time,"
        " multiplied by the growth of the VM steps."
    )
    if shown > MAX_STATEMENTS:
        yield f"{counted(shown - MAX_STATEMENTS, 'more statement')} with less time"
    if found.unexplained:
        yield (
            f"{counted(len(found.unexplained), 'statement')} ran several times, but not once per"
            " row of another statement. The forecast assumes that they run equally often on"
            f" more data: {shorten(found.unexplained[0], 100)}"
        )
    if found.missing or left_out:
        yield (
            f"Not measured: {counted(len(found.missing), 'statement')}"
            + (f" ({shorten(found.missing[0], 100)})" if found.missing else "")
            + f"; {counted(left_out, 'replayed execution')} failed"
        )
