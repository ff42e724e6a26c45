"""Facts from SQLite's planner that findings need."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from queryprof.analysis.plans import Steps
from queryprof.sql.triggers import Trigger

NO_INDEX = (
    "No helpful index on its plain columns was found. Compare columns as they are stored, or"
    " create an index on the compared expression (--prove tries those with values in them)."
)
"""The sentence for a statement that no index helps, with a known schema."""

IN_ORDER = (
    "SQLite reads it in the order of an existing index, and uses no index on the compared"
    " columns instead: --prove measures the indexes that may help."
)
"""The sentence for a choice that the planner makes without statistics of the database."""


@dataclass(frozen=True, slots=True)
class SkippingComparison:
    """A comparison that skips rows.

    Attributes:
        columns: the compared columns; "" stands for an expression or another table's column.
        steps: VM steps for each skipped row.
    """

    columns: frozenset[str]
    steps: int


@dataclass(frozen=True, slots=True)
class RowSteps:
    """VM steps of a statement that scans one table.

    Attributes:
        left_out: the comparisons that skip rows, in order.
        inner: VM steps of a row that starts an inner loop; None if not found.
        taken: VM steps of a row that no comparison skips.
        once: VM steps per execution, without the steps of its rows.
    """

    left_out: tuple[SkippingComparison, ...]
    inner: int | None
    taken: int
    once: int

    def estimate_remaining_rows(
        self, columns: AbstractSet[str], steps: float, read: float, returned: float | None
    ) -> tuple[float, float]:
        """Estimate how many of the read rows an index on these columns leaves, from the VM steps of
        an execution. Return the fewest and the most rows.

        Args:
            returned: rows that no comparison skipped; None if unknown.
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
    def extra_used_row_time(self) -> float:
        """The extra time of a used row, in units of the time of a skipped row."""
        first = self.left_out[0].steps
        return (self.taken - first) / first


def partial_index_note(served: IndexHelp | None) -> tuple[str, ...]:
    """Return a sentence about a partial index whose condition the statement may imply."""
    if not served or not served.partial or served.partial[2]:
        return ()
    name, condition, _ = served.partial
    return (
        (
            f"the index {name} has only the rows WHERE {condition}: if it needs only these,"
            " write the condition as in the index, with its value in the text"
        ),
    )


@dataclass(frozen=True, slots=True)
class IndexHelp:
    """How indexes can help a statement, according to the planner.

    Attributes:
        plan: the plan on an empty copy of the schema.
        is_other: True if the program had another plan because schema or statistics changed. Then
            the other attributes are unknown.
        code: SQL of tried indexes that improve the plan; "" if there are none.
        terms: the columns or expressions of these indexes, as SQL.
        is_plain: True if all terms are columns, without expressions or collations.
        covers: True if the indexes hold all columns that the statement needs from its only table.
        covering: SQL of an index that holds all needed columns, if `code` does not; "" if unknown
            or too wide.
        widened: SQL of the index that the plan's innermost loop reads, with the columns now looked
            up in the table; "" if not found.
        still_scans: True if the plan with these indexes still scans a table inside another loop.
        searches: True if that plan searches by more terms or scans less.
        sorts_less: True if that plan sorts less.
        finds_end: True if that plan reads only the end of an index, for max() or min().
        by_range: True if that plan searches an index only by a range, which may be wide.
        by_prefix: True if that range comes only from LIKE or GLOB patterns that begin with a
            letter.
        by_reference: True if the scan checks a foreign key for a changed or deleted row.
        is_aggregate: True if the statement combines several rows into one.
        filtering: the same facts for an index that finds the rows of the WHERE, if `code` only
            sorts; else None.
        row_steps: the VM steps of the statement's scan in the program's SQLite; None unless there
            is exactly one scan.
        partial: the name of a partial index that the planner would use if it had all rows, its
            condition, and whether the statement certainly implies the condition. The statement does
            not contain the condition as written.
        other_version: the SQLite version of this planner if the program's own is not available;
            else "".
        differing: columns of tables that are scanned even with these indexes, for which an index
            would help if they had another type.
        recollated: columns for which an index would help without their collation.
        functions: functions that the program or an extension registered, in lower case.
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
        """Return the tables that a statement reads, as far as known."""

    def crossed_tables(self, statement: str, plans: Sequence[Steps]) -> tuple[str, ...]:
        """Return two tables whose rows a join combines, each with each. The table that both are
        joined to is the third. Empty if there are no such tables, or without a schema.
        """

    def unindexed_references(
        self, statement: str, plans: Sequence[Steps]
    ) -> tuple[tuple[str, ...], str]:
        """Return the foreign keys that make a statement scan a table, and the SQL of indexes on
        them. Both are empty if there are no such keys, or without a schema.
        """

    def triggers(self, statement: str) -> Sequence[Trigger]:
        """Return the triggers that a statement fires, as far as its schema is known."""

    def statistics_mislead(self, statement: str, plans: Sequence[Steps]) -> bool:
        """Return whether the planner chooses another plan without the statistics."""


class NoPlanner:
    """A planner without a schema."""

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
