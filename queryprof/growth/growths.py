"""How the figures of statements grow from run to run, and with which tables.

The input is several runs of the same code on more and more rows (Run). The output is one Growth per
statement and figure. A growth's tables are the statement's tables that got more rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from queryprof.comparing.baseline_figures import OTHER, UNKNOWN, StatementFigures, TestFigures
from queryprof.growth.law import Law, fit_law
from queryprof.sql.tokens import tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ALL = "(all statements)"
VM_STEPS, EXECUTIONS, ROWS = "VM steps", "executions", "rows"
NONE = StatementFigures(0, 0, 0, 0)
MAX_TIMES = 4
"""A statement that runs more often per row of another statement is not its child."""

NOISE, UNCERTAIN = 0.1, 0.35
"""An exponent may exceed its limit by NOISE. If the law is not certain, the slope may exceed the
limit by UNCERTAIN. In a simulation of 600 figures with random rows and a limit of 1, these values
reported 1% of the linear and 99% of the quadratic figures (with UNCERTAIN = 0.6: 2% and 92%).
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the code.

    Attributes:
        size: the size for which the test created its data.
        rows: the rows of each table, by its name in lower case.
        grown: the tables that got more rows before this run. The code itself may write to other
            tables.
        figures: the figures of each executed statement.
    """

    size: int
    rows: Mapping[str, int]
    grown: frozenset[str]
    figures: TestFigures


@dataclass(frozen=True, slots=True)
class Growth:
    """How one figure of a statement grows.

    Attributes:
        statement: the statement's text, or ALL.
        figure: VM_STEPS, EXECUTIONS or ROWS.
        law: the fitted law of the figure, as a function of `sizes`.
        each: the law of one execution's VM steps; None for other figures.
        tables: the tables with which the figure grows; several if they grew together, empty if
            unknown.
        parent: the statement whose rows make a loop run this statement; "" if not found.
        times: the executions per row of the parent.
        sizes: the number of the table's rows in each run, if one of `tables` grew in every run;
            else the size of each run.
        values: the figure at each size.
        last: the statement's figures in the last run.
    """

    statement: str
    figure: str
    law: Law
    each: Law | None
    tables: tuple[str, ...]
    parent: str
    sizes: tuple[int, ...]
    values: tuple[int, ...]
    last: StatementFigures
    times: int = 1

    def exceeds(self, most: float) -> bool:
        """Return whether the exponent exceeds a limit (see NOISE, UNCERTAIN)."""
        law = self.law
        return law.exponent > most + NOISE and (law.is_certain or law.slope > most + UNCERTAIN)


def growths_of_statements(runs: Sequence[Run]) -> list[Growth]:
    """Return the growth of each statement's figures, and of all statements together.

    Args:
        runs: at least four runs of the same code, with more data each time.
    """
    return list(_Series(runs).growths())


def growths_above(found: Iterable[Growth], most: float) -> list[Growth]:
    """Return the growths above a limit. The growth with the largest last value comes first.

    Each statement has at most one growth in the result: VM steps, or else executions, or else rows.
    The growth of all statements together (ALL) is included only if no single statement exceeds the
    limit. ALL detects growth in statements whose text changes from run to run.
    """
    over: dict[str, Growth] = {}
    for one in found:
        if one.exceeds(most):
            over.setdefault(one.statement, one)
    if len(over) > 1:
        over.pop(ALL, None)
    return sorted(over.values(), key=lambda one: (-one.values[-1], one.statement))


def words_in(statement: str) -> frozenset[str]:
    """Return the names and words of a statement, in lower case."""
    return frozenset(token.named for token in tokens_of(statement))


class _Series:
    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._sizes = tuple(run.size for run in runs)
        executed = [set(run.figures) - {OTHER, UNKNOWN} for run in runs]
        self._statements = sorted(set.intersection(*executed))
        grown = {name for run in runs[1:] for name in run.grown}
        words = {word for one in set.union(*executed) for word in words_in(one)}
        self._moved = tuple(sorted(grown & words))
        self._only = self._moved if len(self._moved) == 1 else ()

    def growths(self) -> Iterator[Growth]:
        for statement in self._statements:
            yield from self._of(statement)
        yield from self._of_all()

    def _of_all(self) -> Iterator[Growth]:
        last = self._runs[-1].figures
        most = max(last.values(), key=lambda one: (one.vm_steps or 0, one.executions), default=NONE)
        for figure, field in ((VM_STEPS, "vm_steps"), (EXECUTIONS, "executions"), (ROWS, "rows")):
            sums = [sum(getattr(f, field) or 0 for f in r.figures.values()) for r in self._runs]
            law = fit_law(self._sizes, sums)
            yield Growth(ALL, figure, law, None, (), "", self._sizes, tuple(sums), most)

    def _of(self, statement: str) -> Iterator[Growth]:
        its = [run.figures[statement] for run in self._runs]
        executions = [one.executions for one in its]
        count = fit_law(self._sizes, executions)
        parent, times = ("", 1) if count.is_constant else self._parent(statement, executions)
        loop = self._tables_of(parent) if parent else self._only
        if all(one.vm_steps is not None for one in its):
            steps = [one.vm_steps or 0 for one in its]
            each = fit_law(
                self._sizes, [s / max(n, 1) for s, n in zip(steps, executions, strict=True)]
            )
            own = () if each.is_constant else self._tables_of(statement)
            of_loop = () if count.is_constant else loop
            known = (own or each.is_constant) and (of_loop or count.is_constant)
            tables = tuple(dict.fromkeys((*of_loop, *own))) if known else ()
            yield self._growth(statement, VM_STEPS, steps, tables, parent, times, its[-1], each)
        yield self._growth(statement, EXECUTIONS, executions, loop, parent, times, its[-1])
        rows = [one.rows for one in its]
        own = self._tables_of(statement) if count.is_constant else ()
        yield self._growth(statement, ROWS, rows, own, parent, times, its[-1])

    def _growth(
        self,
        statement: str,
        figure: str,
        values: Sequence[int],
        tables: tuple[str, ...],
        parent: str,
        times: int,
        last: StatementFigures,
        each: Law | None = None,
    ) -> Growth:
        sizes = self._sizes
        if len(tables) == 1:
            rows = tuple(run.rows.get(tables[0], 0) for run in self._runs)
            sizes = rows if all(a < b for a, b in pairwise((0, *rows))) else sizes
        law = fit_law(sizes, values)
        return Growth(
            statement, figure, law, each, tables, parent, sizes, tuple(values), last, times
        )

    def _tables_of(self, statement: str) -> tuple[str, ...]:
        """Return the statement's tables that got more rows. If the statement names no such table, a
        view or trigger may read it: return the only table that got more rows, if there is just one.
        """
        named = words_in(statement)
        return tuple(name for name in self._moved if name in named) or self._only

    def _parent(self, statement: str, executions: Sequence[int]) -> tuple[str, int]:
        """Return the statement whose rows, times a constant, equal the executions of `statement` in
        every run. Also return this constant. The result is ("", 1) if there is no such statement.
        """
        for times in range(1, MAX_TIMES + 1):
            for other in self._statements:
                rows = [run.figures[other].rows for run in self._runs]
                if other != statement and [n * times for n in rows] == executions:
                    return other, times
        return "", 1
