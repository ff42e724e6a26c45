"""Estimate a program's runs on less data, from one recording and from replays of its statements.

A replay measures each statement's work per execution on less data. If the program ran a statement
once per row of another statement (its parent), the number of executions follows from the parent's
rows. All other statements keep their recorded number of executions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from queryprof.comparing.baseline_figures import StatementFigures, TestFigures
from queryprof.growth.growths import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MIN_EXECUTIONS = 5
"""No parent is sought for a statement with fewer executions: an equal number of rows may be chance.
"""


@dataclass(frozen=True, slots=True)
class ComposedRuns:
    """The estimated runs of a program on less data.

    Attributes:
        runs: the run with the least data first; its size is 1.
        unexplained: statements with MIN_EXECUTIONS or more executions, but without a parent.
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
    """Return the estimated runs.

    Args:
        recorded: the recording's figures.
        order: the statements, in the order of their first executions.
        replays: share, rows by table, and figures of each replay. A replay had the first 1/share of
            each table's rows; the last replay had all rows.
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
    """Return the nearest earlier statement whose number of rows equals the number of executions of
    `statement`; "" if there is none.
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
    """Estimate the number of executions of each statement in one replay."""

    def __init__(
        self, recorded: TestFigures, figures: TestFigures, parents: Mapping[str, str]
    ) -> None:
        self._recorded, self._figures, self._parents = recorded, figures, parents

    def executions(self, statement: str) -> float:
        """Return the number of executions of a statement. The recursion ends, because a parent
        always has fewer executions.
        """
        parent = self._parents[statement]
        if not parent:
            return self._recorded[statement].executions
        figures = self._figures.get(parent)
        return self.executions(parent) * _rows_each(figures) if figures else 0.0


def _scaled(
    recorded: StatementFigures, played: StatementFigures, executions: float
) -> StatementFigures:
    """Scale the figures of a replay to `executions`."""
    each = executions / max(1, played.executions)
    steps = None if played.vm_steps is None else round(played.vm_steps * each)
    return replace(
        played,
        executions=round(executions),
        rows=round(played.rows * each),
        vm_steps=steps,
        sites=recorded.sites,
    )
