"""Tuning results for a terminal: tables of effects, and throughput by number of workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import RenderableType

from queryprof.analysis.units import duration, percent
from queryprof.report.terminal.console import (
    Text,
    borderless_table,
    console_for,
    heading_line,
    print_parts,
)
from queryprof.statistics.factorial import Effect
from queryprof.statistics.pragma_effects import (
    PragmaCombination,
    PragmaExperiment,
    combination_notes,
)
from queryprof.statistics.throughput import WorkersResult, is_certainly_lower

MAX_ORDER = 2
BAR = 30
UNCERTAIN = "No pragma makes a significant difference: keep your settings."


def print_pragmas(
    found: PragmaExperiment, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print the effects, and the fastest combinations with their costs."""
    console = console_for(file, width)
    table = borderless_table("")
    for name in ("effect", "time", "95% interval", "of variation", ""):
        table.add_column(name, justify="left" if name in ("effect", "") else "right")
    for effect in found.effects.effects:
        if len(effect.factors) <= MAX_ORDER:
            certain = "" if found.effects.is_certain(effect) else "may be chance"
            table.add_row(
                _effect_in_words(effect, found),
                _change_in_percent(effect.effect),
                _effect_interval(effect),
                percent(effect.share),
                certain,
            )
    parts: list[RenderableType] = [
        heading_line("Effect of each pragma on the workload's database time"),
        table,
    ]
    rest = [one for one in found.effects.effects if len(one.factors) > MAX_ORDER]
    if rest:
        parts.append(
            Text(f"higher interactions: {percent(sum(one.share for one in rest))} of the variation")
        )
    parts.append(Text(f"error: {percent(found.effects.error_share)} of the variation"))
    if not found.is_certain:
        parts.append(Text(UNCERTAIN, "bold", overflow="fold"))
        print_parts(console, parts)
        return
    if found.safe:
        parts += _combination_lines("Fastest without risk of data loss", found.safe)
    fastest = found.combinations[0]
    if fastest.risks:
        parts += _combination_lines("Fastest, but may lose data", fastest)
    print_parts(console, parts)


def _effect_in_words(effect: Effect, found: PragmaExperiment) -> str:
    levels = {factor.name: factor.levels for factor in found.factors}
    if len(effect.factors) > 1:
        return effect.name
    low, high = levels[effect.factors[0]]
    return f"{effect.name}: {low} -> {high}"


def _change_in_percent(effect: float) -> str:
    """Return the change of the time from the low level to the high level, in percent.

    `effect` is the square root of the ratio of the two times.
    """
    return f"{(effect**2 - 1) * 100:+.1f}%"


def _effect_interval(effect: Effect) -> str:
    if effect.interval is None:
        return "?"
    return f"{_change_in_percent(effect.interval[0])} to {_change_in_percent(effect.interval[1])}"


def _combination_lines(title: str, one: PragmaCombination) -> list[RenderableType]:
    pragmas = ", ".join(f"{name} = {value}" for name, value in one.pragmas)
    lines = [*(f"! {risk}" for risk in one.risks), *combination_notes(one)]
    return [
        heading_line(f"{title}: {duration(one.mean_s * 1e9)}"),
        Text(pragmas, "bold cyan", overflow="fold"),
        *(Text(f"  {line}", overflow="fold") for line in lines),
    ]


def print_workers(
    points: Sequence[WorkersResult],
    best: int,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print the executions per second by number of workers, and the best number."""
    console = console_for(file, width)
    most = max((point.operations for point in points), default=1.0) or 1.0
    parts: list[RenderableType] = [heading_line("Executions per second, by number of workers")]
    for point in points:
        bar = "█" * max(1, round(BAR * point.operations / most))
        half = f" ± {point.half_width:,.0f}" if point.half_width is not None else ""
        parts.append(Text(f"{point.workers:>4} {bar:<{BAR}} {point.operations:,.0f}{half}"))
    top = max(points, key=lambda point: point.operations)
    last = points[-1]
    if last.operations < 0.9 * top.operations:
        parts.append(
            Text(
                f"More workers are slower: {last.workers} workers complete"
                f" {percent(1 - last.operations / top.operations)} fewer executions per second than"
                f" {top.workers}. A database has one writer at a time.",
                "yellow",
                overflow="fold",
            )
        )
    (chosen,) = [point for point in points if point.workers == best]
    rivals = [
        str(point.workers)
        for point in points
        if point is not chosen and not is_certainly_lower(point, chosen)
    ]
    parts.append(heading_line(f"Best number of workers: {best if not rivals else 'not certain'}"))
    if rivals:
        also = ", ".join(rivals)
        parts.append(Text(f"{best} is not certainly faster than {also}.", overflow="fold"))
    print_parts(console, parts)
