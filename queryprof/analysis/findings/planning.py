"""What findings want to know of SQLite's planner."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from queryprof.analysis.plans import Steps
from queryprof.sql.triggers import Trigger

NO_INDEX = (
    "No index on its plain columns that would serve it was found: compare columns as they are"
    " stored; or create an index on the expression that is compared (--prove tries those with"
    " values in them)."
)
"""The sentence for a statement of a known schema that no index serves."""

IN_ORDER = (
    "SQLite reads it in the order of an index that is there, and takes none on what it compares"
    " instead: --prove measures those that may win."
)
"""And where the planner has the choice between both, by no figures of the database."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A comparison that leaves rows out.

    Attributes:
        columns: that it is about; "" is an expression, or another table's.
        steps: VM steps of a row that it leaves out.
    """

    columns: frozenset[str]
    steps: int


@dataclass(frozen=True, slots=True)
class RowSteps:
    """VM steps of a statement that reads one table from end to end.

    Attributes:
        left_out: its comparisons, in their order.
        inner: VM steps of a row for which a loop inside begins; None: there is none.
        taken: of a row that no comparison leaves out; once: of an execution, beside its rows.
    """

    left_out: tuple[LeftOut, ...]
    inner: int | None
    taken: int
    once: int

    def rows_left(
        self, columns: AbstractSet[str], steps: float, read: float, returned: float | None
    ) -> tuple[float, float]:
        """How many of the rows read an index on some columns leaves, by the VM steps of an
        execution: at the least and at the most.

        Args:
            returned: rows that no comparison has left out; None: it is not known.
        """
        costs = [one.steps for one in self.left_out]
        served = next(
            (i for i, one in enumerate(self.left_out) if not one.columns <= columns), len(costs)
        )
        if not served:
            return 0.0, read
        known = returned if self.inner is None else None
        if served == len(costs) and known is not None:
            return known, known
        taken = known or 0.0
        passed = self.inner or self.taken
        further = [*costs[served:], passed] if known is None else costs[served:]
        more = steps - self.once - taken * self.taken
        bounds = [
            taken + max(0.0, more - (read - taken) * before) / max(1, after - before)
            for before, after in ((costs[served - 1], further[-1]), (costs[0], further[0]))
        ]
        return 0.0 if self.inner else min(read, bounds[0]), min(read, bounds[1])

    @property
    def more(self) -> float:
        """What a row that is taken takes longer, in times of one that is left out."""
        first = self.left_out[0].steps
        return (self.taken - first) / first


def partial_note(served: Served | None) -> tuple[str, ...]:
    """The sentence about a partial index whose condition the statement may mean."""
    if not served or not served.partial or served.partial[2]:
        return ()
    name, condition, _ = served.partial
    return (
        (
            f"the index {name} has the rows WHERE {condition} alone: where it looks for these,"
            " write the condition as it is there, with its value in the text"
        ),
    )


@dataclass(frozen=True, slots=True)
class Served:
    """What would serve a statement.

    Attributes:
        plan: as it is planned on an empty copy of the schema.
        is_other: whether the program had another plan, for a schema or statistics that have
            changed; nothing else is known then.
        code: the SQL of indexes that were created, and with which the plan is a better one; "":
            there are none.
        terms: what these are on, as SQL.
        is_plain: whether that is columns alone, as they are: no expression, no other collation.
        covers: whether those have all that the statement reads of its only table, which is not read
            then.
        covering: the SQL of one that has, too, where they have not; "": it is not known, or too
            wide.
        widened: the SQL of the index that the innermost loop of its plan reads, with what is looked
            up in the table; "": of none.
        still_scans: whether the plan then still reads a table from end to end inside of another
            loop.
        searches: whether it then is searched by more, or read from end to end no more; sorts_less:
            whether it sorts less.
        finds_end: whether its end is all that is read of an index, for a max() or min().
        by_range: whether an index is searched by a range alone, which may be wide.
        by_prefix: whether that is for patterns of LIKE or GLOB alone that begin with a letter.
        by_reference: whether the scan is that of a foreign key, for a row that is changed or
            deleted.
        folds: whether it makes one row of several that it reads.
        row_steps: of its scan, as the program's SQLite has it; None: it has none, or not one alone.
        partial: an index on some rows alone that the planner would take, had it all rows, and its
            WHERE: the statement does not have that as it is written there; whether it means that
            condition, or may only mean it.
        other_version: of SQLite, whose planner says so, where the program's own is another one that
            is not here; "": it is the program's.
        differing: columns that an index would serve, had they another type; recollated: had they no
            collation of their own.
    """

    plan: Steps
    code: str = ""
    terms: tuple[str, ...] = ()
    is_plain: bool = True
    covers: bool = False
    covering: str = ""
    widened: str = ""
    still_scans: bool = False
    searches: bool = True
    sorts_less: bool = False
    finds_end: bool = False
    other_version: str = ""
    by_range: bool = False
    by_prefix: bool = False
    by_reference: bool = False
    folds: bool = False
    differing: tuple[str, ...] = ()
    recollated: tuple[str, ...] = ()
    partial: tuple[str, str, bool] | None = None
    is_other: bool = False
    row_steps: RowSteps | None = None

    @property
    def without_index(self) -> str:
        """The sentence where no index was found."""
        is_in_order = any(step.startswith("SCAN") and " USING " in step for step in self.plan)
        return IN_ORDER if is_in_order else NO_INDEX


class Planner(Protocol):
    """Knows the schema of the program's databases."""

    def served(self, statement: str, plans: Sequence[Steps]) -> Served | None:
        """What would serve a statement that has these plans (none: unknown); None: it is
        not known.
        """

    def tables(self, statement: str) -> frozenset[str]:
        """The tables that a statement reads, as far as they are known."""

    def triggers(self, statement: str) -> Sequence[Trigger]:
        """Those that a statement fires, as far as its schema is known."""

    def is_misled(self, statement: str, plans: Sequence[Steps]) -> bool:
        """Whether another plan is chosen without the statistics."""


class NoPlanner:
    """Knows nothing."""

    def served(self, statement: str, plans: Sequence[Steps]) -> None:  # noqa: ARG002
        return None

    def tables(self, statement: str) -> frozenset[str]:  # noqa: ARG002
        return frozenset()

    def triggers(self, statement: str) -> Sequence[Trigger]:  # noqa: ARG002
        return ()

    def is_misled(self, statement: str, plans: Sequence[Steps]) -> bool:  # noqa: ARG002
        return False


NO_PLANNER = NoPlanner()
