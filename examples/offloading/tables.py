"""Format the figures of the experiment as text of at most 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from effects import Configuration, Estimate, change, estimate
from one_run import STALL_S, Figures
from pairs import FILE, KINDS

from queryprof.statistics.factorial import Effects

NOTHING: Configuration = frozenset()
EVERYTHING: Configuration = frozenset(KINDS)
PUBLISHED = {frozenset({FILE}): -22.5, EVERYTHING: -18.0}
"""The published changes of the total time, in percent relative to everything on the loop."""

NAME_COLUMNS = 21
BAR_COLUMNS = 30

Results = Mapping[Configuration, Sequence[Figures]]


@dataclass(frozen=True)
class Column:
    """One measured figure in a table."""

    title: str
    field: str
    scale: float
    decimals: int


TIMES = (
    Column("total s", "total_s", 1, 2),
    Column("p50 ms", "latency_p50_s", 1000, 0),
    Column("p99 ms", "latency_p99_s", 1000, 0),
    Column("CPU s", "cpu_s", 1, 2),
)
LAGS = (
    Column("requests/s", "requests_per_s", 1, 1),
    Column("lag p99 ms", "lag_p99_s", 1000, 0),
    Column("lag max ms", "lag_max_s", 1000, 0),
    Column(f"stalls >{STALL_S * 1000:.0f} ms", "stalls", 1, 1),
)


def name(configuration: Configuration) -> str:
    """Return the kinds of work off the loop."""
    return " ".join(kind for kind in KINDS if kind in configuration) or "nothing"


def values(runs: Sequence[Figures], column: Column) -> list[float]:
    """Return one figure of every round."""
    return [getattr(run, column.field) * column.scale for run in runs]


def plus_minus(value: Estimate, decimals: int) -> str:
    """Return the mean, and half the interval's width if it is known."""
    if math.isnan(value.half_width):
        return f"{value.mean:.{decimals}f}"
    return f"{value.mean:.{decimals}f} ± {value.half_width:.{decimals}f}"


def interval(value: Estimate) -> str:
    """Return the limits of a change in percent, if they are known."""
    return "" if math.isnan(value.low) else f"[{value.low:+.1f}, {value.high:+.1f}]"


def table(results: Results, columns: Sequence[Column]) -> Iterator[str]:
    """Yield a line for each configuration."""
    yield f"{'off the loop':{NAME_COLUMNS}}" + "".join(f"{c.title:>14}" for c in columns)
    for configuration, runs in results.items():
        cells = [plus_minus(estimate(values(runs, c)), c.decimals) for c in columns]
        yield f"{name(configuration):{NAME_COLUMNS}}" + "".join(f"{cell:>14}" for cell in cells)


def changes(results: Results) -> dict[Configuration, Estimate]:
    """Return each configuration's change of the total time (%), relative to all on the loop."""
    base = values(results[NOTHING], TIMES[0])
    return {key: change(values(runs, TIMES[0]), base) for key, runs in results.items()}


def chart(results: Results) -> Iterator[str]:
    """Yield a bar for each configuration."""
    totals_s = {key: estimate(values(runs, TIMES[0])).mean for key, runs in results.items()}
    longest_s = max(totals_s.values())
    for configuration, value in changes(results).items():
        bar = "█" * max(1, round(totals_s[configuration] / longest_s * BAR_COLUMNS))
        text = f"{value.mean:+.1f} {interval(value)}" if configuration else ""
        yield f"{name(configuration):{NAME_COLUMNS}}{bar:{BAR_COLUMNS}} {text}".rstrip()


def effects_table(effects: Effects) -> Iterator[str]:
    """Yield a line for each effect and one for the error."""
    yield f"{'effect':30}{'time %':>10}{'95% interval':>20}{'variation %':>20}"
    for effect in effects.effects:
        # An effect is the square root of the ratio of the two levels.
        low, mean, high = (
            math.nan if limit is None else (limit**2 - 1) * 100
            for limit in (
                effect.interval and effect.interval[0],
                effect.effect,
                effect.interval and effect.interval[1],
            )
        )
        yield (
            f"{' x '.join(effect.factors):30}{mean:>+10.1f}{interval(Estimate(mean, low, high)):>20}"
            f"{effect.share * 100:>20.1f}"
        )
    yield f"{'error':60}{effects.error_share * 100:>20.1f}"


def difference(ours: Estimate, published: float) -> str:
    """Return whether a change in percent agrees with the published one."""
    if math.isnan(ours.low):
        return "one round has no interval to compare by"
    is_change = not ours.low <= 0 <= ours.high
    if ours.low <= published <= ours.high:
        return "agrees" if is_change else "undecided: our interval holds both that and no change"
    if not is_change:
        return "differs: ours may be no change"
    if (ours.mean < 0) != (published < 0):
        return "differs: ours has the opposite direction"
    return f"differs: ours is {'larger' if abs(ours.mean) > abs(published) else 'smaller'}"


def comparison(results: Results) -> str:
    """Return the sentence that compares with the published result."""
    ours = changes(results)
    parts = [
        f"{what} off the loop the total time changes by "
        f"{f'{ours[key].mean:+.1f}% {interval(ours[key])}'.rstrip()} here and by "
        f"{published:+.1f}% in the published study ({difference(ours[key], published)})"
        for (key, published), what in zip(
            PUBLISHED.items(), ("With file work alone", "with all three kinds"), strict=True
        )
    ]
    return "; ".join(parts) + "."
