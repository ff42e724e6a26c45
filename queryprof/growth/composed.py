"""The runs of a program on less data, made from one recording and from replays of its statements.

A replay shows what one execution does on less data. The number of executions follows from the rows
of other statements: a statement that ran once per row of another one runs as often as that one
returns rows. Other numbers of executions are taken as they were recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from queryprof.comparing.baseline_figures import StatementFigures, TestFigures
from queryprof.growth.growths import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MIN_EXECUTIONS = 5
"""With fewer executions, equal numbers are chance."""


@dataclass(frozen=True, slots=True)
class ComposedRuns:
    """The runs of a program on less data.

    Attributes:
        runs: smallest first; the size of the first is 1.
        unexplained: statements that ran several times, for the rows of no other statement.
        missing: recorded statements that no replay executed.
    """

    runs: tuple[Run, ...]
    unexplained: tuple[str, ...]
    missing: tuple[str, ...]


def compose_runs(
    recorded: TestFigures,
    order: Sequence[str],
    replays: Sequence[tuple[int, Mapping[str, int], TestFigures]],
) -> ComposedRuns:
    """Return the runs.

    Args:
        recorded: the recording's figures.
        order: the statements by their first execution.
        replays: share, rows by table, and figures of each replay; the first 1/share of the rows was
            there. The last one had all rows.
    """
    whole = replays[-1][2]
    played = {one for one in recorded if one in whole and whole[one].executions}
    places = {one: at for at, one in enumerate(order)}
    parents = {one: _parent(one, recorded, whole, played, places) for one in played}
    runs, before = [], dict[str, int]()
    for share, rows, figures in replays:
        counts = _Counts(recorded, figures, parents)
        its = {
            one: _scaled(recorded[one], figures[one], counts.executions(one))
            for one in played
            if one in figures
        }
        grown = frozenset(table for table, n in rows.items() if n > before.get(table, 0))
        runs.append(Run(replays[0][0] // share, rows, grown, its))
        before = dict(rows)
    many = [one for one in played if recorded[one].executions >= MIN_EXECUTIONS]
    return ComposedRuns(
        tuple(runs),
        tuple(sorted(one for one in many if not parents[one])),
        tuple(sorted(set(recorded) - played)),
    )


def _parent(
    statement: str,
    recorded: TestFigures,
    whole: TestFigures,
    played: set[str],
    places: Mapping[str, int],
) -> str:
    """Return the last statement before that returned as many rows as `statement` was executed; ""
    for none.
    """
    executions = recorded[statement].executions
    own = places.get(statement, 0)
    if executions < MIN_EXECUTIONS:
        return ""
    earlier = [one for one in played if places.get(one, own) < own]
    for other in sorted(earlier, key=lambda one: -places[one]):
        rows = recorded[other].executions * _rows_each(whole[other])
        if round(rows) == executions and recorded[other].executions < executions:
            return other
    return ""


def _rows_each(figures: StatementFigures) -> float:
    return figures.rows / max(1, figures.executions)


class _Counts:
    """The numbers of executions on one share of the rows."""

    def __init__(
        self, recorded: TestFigures, figures: TestFigures, parents: Mapping[str, str]
    ) -> None:
        self._recorded, self._figures, self._parents = recorded, figures, parents

    def executions(self, statement: str) -> float:
        """Return the executions of a statement. A parent has fewer executions, so this ends."""
        parent = self._parents[statement]
        if not parent:
            return self._recorded[statement].executions
        figures = self._figures.get(parent)
        return self.executions(parent) * _rows_each(figures) if figures else 0.0


def _scaled(
    recorded: StatementFigures, played: StatementFigures, executions: float
) -> StatementFigures:
    """Return the figures of so many executions."""
    each = executions / max(1, played.executions)
    steps = None if played.vm_steps is None else round(played.vm_steps * each)
    return replace(
        played,
        executions=round(executions),
        rows=round(played.rows * each),
        vm_steps=steps,
        sites=recorded.sites,
    )
