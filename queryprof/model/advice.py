"""Advice: changes to a database and rewrites of statements, measured on a copy, with their savings
and costs.

Attributes ending in `_ns` are in nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

SLOWER = 1.25
"""A statement counts as slower if its time grows by more than this factor. A busy machine alone can
slow it down by less.
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one execution of a statement, averaged over its parameters. None means
    unknown.
    """

    ns: float
    vm_steps: float | None
    page_fetches: float | None


@dataclass(frozen=True, slots=True)
class DatabaseChange:
    """One change to the database.

    Attributes:
        sql: the statement that makes the change.
        undo: the statement that reverts it.
        index: the name of the new index; "" for ANALYZE.
        win_ns: the saved recorded time in addition to all earlier changes, minus the additional
            time of recorded inserts.
        bytes: growth of the file.
        insert_ns: extra time per insert into the table; None if unknown or without recorded
            inserts.
        inserts: number of recorded inserts into the table.
    """

    sql: str
    undo: str
    index: str
    table: str
    win_ns: float
    bytes: int
    insert_ns: float | None
    inserts: int


@dataclass(frozen=True, slots=True)
class OutweighedIndexes:
    """Indexes that are not recommended: they save time in some statements, but cost more in inserts
    or other statements.

    Attributes:
        sql: the statements that create the indexes.
        statements: the statements that become faster.
        slower: the statements that become notably slower.
        win_ns: the time that the faster statements save.
        loss_ns: the additional time of inserts and slower statements.
        inserts: number of recorded inserts into the tables.
    """

    sql: str
    statements: tuple[str, ...]
    win_ns: float
    loss_ns: float
    inserts: int
    slower: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """The measurements of a statement before and after all changes.

    Attributes:
        recorded_ns: recorded time of all executions of the statement.
        is_proved: whether the statement is faster, with fewer VM steps or page fetches and the same
            rows.
        doubt: why the improvement is not proved; "" if there is no doubt.
        is_drawn: whether its parameters were taken from the database, not from the recording.
    """

    statement: str
    executions: int
    recorded_ns: int
    before: Cost
    after: Cost
    uses: tuple[str, ...]
    is_proved: bool
    doubt: str
    is_drawn: bool

    @property
    def after_ns(self) -> float:
        """Expected time of all executions with the changes.

        Savings are scaled to the recorded time. Losses are added as measured.
        """
        if self.after.ns > self.before.ns:
            return self.recorded_ns + self.executions * (self.after.ns - self.before.ns)
        return self.recorded_ns * self.after.ns / self.before.ns if self.before.ns else 0.0

    @property
    def is_slower(self) -> bool:
        """Whether the statement uses a new index and is slower by the factor SLOWER, with more VM
        steps or page fetches.
        """
        work = (
            (self.before.vm_steps, self.after.vm_steps),
            (self.before.page_fetches, self.after.page_fetches),
        )
        known = [after > before for before, after in work if None not in (before, after)]  # type: ignore[operator]
        is_more = any(known) or not known
        return bool(self.uses) and is_more and self.after.ns > SLOWER * self.before.ns


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite of a statement that is faster and returns the same rows.

    Attributes:
        sql: the new text.
        how: further changes that the program needs.
        before: the cost now: of the statement or, for an N+1, of the outer query and the statement
            once per row.
        with_changes: True if the rewrite was measured with all database changes; False for the
            unchanged database.
        compared: number of parameter sets for which the rows were equal.
        is_drawn: whether its parameters were taken from the database, not from the recording.
    """

    statement: str
    sql: str
    how: str
    before: Cost
    after: Cost
    with_changes: bool
    compared: int
    is_drawn: bool


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A statement that could not be measured, and the reason."""

    statement: str
    recorded_ns: int
    reason: str


@dataclass(frozen=True, slots=True)
class Advice:
    """All advice for a database, measured on a copy.

    Attributes:
        changes: new indexes, largest saving first, and then ANALYZE.
        outweighed: indexes that are not recommended because they cost more than they save.
        rewrites: at most one per statement.
        sqlite_version: the SQLite version of the measurements.
        other_version: the program's SQLite version if different; else "".
        sample_every: N if the search used a sample of 1 in N rows of large tables; 1 if it used all
            rows.
        is_complete: whether the search finished within its time limit.
    """

    database: str
    changes: tuple[DatabaseChange, ...]
    outweighed: tuple[OutweighedIndexes, ...]
    proofs: tuple[Proof, ...]
    rewrites: tuple[Rewrite, ...]
    not_measured: tuple[NotMeasured, ...]
    sqlite_version: str
    other_version: str
    sample_every: int
    is_complete: bool
    took_s: float

    @property
    def before_ns(self) -> float:
        """The recorded time of the measured statements."""
        return float(sum(proof.recorded_ns for proof in self.proofs))

    @property
    def after_ns(self) -> float:
        """The expected time with all changes, including the extra time of recorded inserts."""
        lost_ns = sum(change.inserts * (change.insert_ns or 0.0) for change in self.changes)
        return sum(proof.after_ns for proof in self.proofs) + lost_ns

    @property
    def curve_ns(self) -> tuple[float, ...]:
        """The expected time after 0, 1, 2 ... changes."""
        wins = accumulate((change.win_ns for change in self.changes), initial=0.0)
        return tuple(max(self.before_ns - won, 0.0) for won in wins)
