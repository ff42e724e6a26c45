"""Define the Planner protocol, through which findings use SQLite's planner, and its results."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from queryprof.analysis.plans import Steps
from queryprof.sql.triggers import Trigger

NO_INDEX = (
    "No index on the table's plain columns helps. Compare columns as they are stored, or create an"
    " index on the compared expression (--prove also tries expressions that contain values)."
)
"""The sentence for a statement that no index helps, with a known schema."""

IN_ORDER = (
    "SQLite reads the table in the order of an existing index, and would ignore an index on the"
    " compared columns. --prove measures the indexes that may help."
)
"""The sentence for a plan that reads a whole index in order. The planner may choose otherwise with
statistics.
"""


@dataclass(frozen=True, slots=True)
class SkippingComparison:
    """A comparison that skips rows.

    Attributes:
        columns: the compared columns; "" stands for an expression or another table's column.
        steps: the VM steps until this comparison skips a row.
    """

    columns: frozenset[str]
    steps: int


@dataclass(frozen=True, slots=True)
class RowSteps:
    """The VM steps of a statement that scans one table, for each kind of row.

    Attributes:
        left_out: the comparisons that skip rows, in the order of their execution.
        inner: VM steps of a row until an inner loop starts; None without an inner loop.
        taken: VM steps of a row that no comparison skips.
        steps_outside_scan: VM steps per execution, outside the scan.
    """

    left_out: tuple[SkippingComparison, ...]
    inner: int | None
    taken: int
    steps_outside_scan: int

    def estimate_remaining_rows(
        self, columns: AbstractSet[str], steps: float, read: float, returned: float | None
    ) -> tuple[float, float]:
        """Estimate from an execution's VM steps how many rows the execution would still read with
        an index on these columns. Return the minimum and the maximum.

        Args:
            steps: the VM steps of the execution. read: the rows that it read. returned: the rows
                that no comparison skipped; None if unknown.
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
        more = steps - self.steps_outside_scan - taken * self.taken
        bounds = [
            taken + max(0.0, more - (read - taken) * before) / max(1, after - before)
            for before, after in ((costs[served - 1], further[-1]), (costs[0], further[0]))
        ]
        return 0.0 if self.inner else min(read, bounds[0]), min(read, bounds[1])

    @property
    def relative_extra_steps(self) -> float:
        """The extra steps of a row that is not skipped, relative to the steps of a skipped row."""
        first = self.left_out[0].steps
        return (self.taken - first) / first


def partial_index_note(served: IndexHelp | None) -> tuple[str, ...]:
    """Return a sentence about a partial index whose condition the statement may imply."""
    if not served or not served.partial or served.partial[2]:
        return ()
    name, condition, _ = served.partial
    return (
        (
            f"the index {name} has only the rows WHERE {condition}: if the statement needs only"
            " these rows, copy the condition into its WHERE, with a literal value"
        ),
    )


@dataclass(frozen=True, slots=True)
class IndexHelp:
    """How indexes can help a statement, according to the planner.

    Attributes:
        plan: the plan on an empty copy of the schema.
        is_other: True if the program had another plan because schema or statistics changed. Then
            the other attributes are unknown.
        code: SQL that creates indexes which improve the plan; "" if there are none.
        terms: the columns or expressions of the indexes in `code`, as SQL.
        is_plain: True if all terms are columns, without expressions or collations.
        covers: True if the indexes hold all columns that the statement needs from its only table.
        covering: SQL of an index that holds all needed columns, if `code` does not; "" if unknown
            or too wide.
        widened: SQL of the index that the plan's innermost loop reads, plus the columns that SQLite
            now looks up in the table; "" if not found.
        still_scans: True if the plan with these indexes still scans a table inside another loop.
        searches: True if the plan with these indexes searches by more terms or scans less.
        sorts_less: True if the plan with these indexes sorts less.
        finds_end: True if the plan with these indexes reads only the end of an index, for max() or
            min().
        by_range: True if the plan with these indexes searches an index only by a range, which may
            be wide.
        by_prefix: True if the index helps only with LIKE or GLOB patterns that begin with a letter.
        by_reference: True if the scan checks a foreign key for a changed or deleted row.
        is_aggregate: True if the statement combines several rows into one.
        filtering: if `code` only avoids sorting, the same facts for an index that serves the WHERE
            clause; else None.
        row_steps: the VM steps of the statement's scan in the program's SQLite; None unless there
            is exactly one scan.
        partial: a partial index that the planner would use if the index had all rows: its name, its
            condition, and whether the statement certainly implies the condition. The planner does
            not use the index, because the statement words the condition differently.
        other_version: the SQLite version of this planner if the program's own is not available;
            else "".
        differing: columns of tables that are still scanned. An index on such a column would help if
            the column had another type.
        recollated: columns on which an index would help if they had no collation.
        functions: the statement's functions that the program or an extension registered, in lower
            case.
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
    is_aggregate: bool = False
    differing: tuple[str, ...] = ()
    recollated: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    partial: tuple[str, str, bool] | None = None
    is_other: bool = False
    row_steps: RowSteps | None = None
    filtering: IndexHelp | None = None

    @property
    def without_index(self) -> str:
        """The sentence for a statement without a helpful index."""
        is_in_order = any(step.startswith("SCAN") and " USING " in step for step in self.plan)
        return IN_ORDER if is_in_order else NO_INDEX


class Planner(Protocol):
    """A planner that knows the schema of the program's databases."""

    def index_help(self, statement: str, plans: Sequence[Steps]) -> IndexHelp | None:
        """Return how indexes can help a statement; None if unknown. `plans` are the statement's
        recorded plans, empty if unknown.
        """

    def tables(self, statement: str) -> frozenset[str]:
        """Return the tables that a statement reads; empty if unknown."""

    def crossed_tables(self, statement: str, plans: Sequence[Steps]) -> tuple[str, ...]:
        """Return two tables whose rows a join multiplies. If both are joined to another table, that
        table is third. The result is empty if there are no such tables, or without a schema.
        """

    def unindexed_references(
        self, statement: str, plans: Sequence[Steps]
    ) -> tuple[tuple[str, ...], str]:
        """Return the foreign keys that make a statement scan a table, and the SQL of indexes on
        them. Both are empty if there are no such keys, or without a schema.
        """

    def triggers(self, statement: str) -> Sequence[Trigger]:
        """Return the triggers that a statement fires; empty if its schema is unknown."""

    def statistics_mislead(self, statement: str, plans: Sequence[Steps]) -> bool:
        """Return whether the planner chooses another plan without the statistics."""


class NoPlanner:
    """The planner to use without a schema. Every answer is empty."""

    def index_help(self, statement: str, plans: Sequence[Steps]) -> None:  # noqa: ARG002
        return None

    def tables(self, statement: str) -> frozenset[str]:  # noqa: ARG002
        return frozenset()

    def crossed_tables(self, statement: str, plans: Sequence[Steps]) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def unindexed_references(
        self,
        statement: str,  # noqa: ARG002
        plans: Sequence[Steps],  # noqa: ARG002
    ) -> tuple[tuple[str, ...], str]:
        return (), ""

    def triggers(self, statement: str) -> Sequence[Trigger]:  # noqa: ARG002
        return ()

    def statistics_mislead(self, statement: str, plans: Sequence[Steps]) -> bool:  # noqa: ARG002
        return False


NO_PLANNER = NoPlanner()
