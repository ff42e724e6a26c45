"""Advice: changes that were measured on a copy of the database, with what each wins and costs.

All times are nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

SLOWER = 1.25
"""A statement that takes so many times what it took is slower, and not measured on a busy machine
alone."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One execution of a statement, on average over its parameters; None: unknown."""

    ns: float
    vm_steps: float | None
    page_fetches: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """One change to the database.

    Attributes:
        sql: what makes it; undo: what takes it back.
        index: its name; "" for ANALYZE.
        win_ns: of the recorded time, with all changes before it made, without what inserts lose.
        bytes: by how much the file grows.
        insert_ns: by how much an insert into the table takes longer; None: nothing was inserted.
        inserts: how many were recorded.
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
class Outweighed:
    """Indexes that make statements faster, and are no advice: the recorded inserts, or other
    statements, lose more to them.

    Attributes:
        sql: what makes them; statements: which they make faster; slower: which slower, by much.
        win_ns: of the statements' recorded time, or as measured; loss_ns: of the inserts' and the
            others'.
        inserts: how many were recorded.
    """

    sql: str
    statements: tuple[str, ...]
    win_ns: float
    loss_ns: float
    inserts: int
    slower: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """A statement before and after all changes.

    Attributes:
        recorded_ns: all its executions together, as recorded.
        is_proved: time and VM steps or page fetches agree, and the rows are equal.
        doubt: why it is not proved, or what else is not sure; else "".
        is_drawn: its parameters are values of the database, not the recording's.
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
        """What all its executions would take: they win a part of the recorded time, and lose what
        was measured.
        """
        if self.after.ns > self.before.ns:
            return self.recorded_ns + self.executions * (self.after.ns - self.before.ns)
        return self.recorded_ns * self.after.ns / self.before.ns if self.before.ns else 0.0

    @property
    def is_slower(self) -> bool:
        """Whether an index that it uses makes it slower, by a quarter and with more work."""
        steps = (self.before.vm_steps, self.after.vm_steps)
        is_more = steps[0] is None or steps[1] is None or steps[1] > steps[0]
        return bool(self.uses) and is_more and self.after.ns > SLOWER * self.before.ns


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Another text for a statement: faster, with equal rows.

    Attributes:
        sql: the new text; how: what else to change in the program.
        before: what is executed in its place now: the statement or, for an N+1, the query around it
            and the statement for each of its rows.
        with_changes: it was measured with all changes to the database made; else with none.
        compared: sets of parameters for which the rows were equal.
        is_drawn: its parameters are values of the database, not the recording's.
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
    """A statement that could not be measured, and why."""

    statement: str
    recorded_ns: int
    reason: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What to change in a database, proved on a copy.

    Attributes:
        changes: in the order in which they win most.
        outweighed: what inserts lose more to, and would win enough without them.
        rewrites: at most one for a statement.
        sqlite_version: of the library that has measured; `other_version`: the program's, where it
            is another one, else "".
        sample_every: the changes were chosen on every so many-th row of large tables; 1: on all
            rows.
        is_complete: the search came to its end within the time to spend.
    """

    database: str
    changes: tuple[Change, ...]
    outweighed: tuple[Outweighed, ...]
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
        """The recorded time of the statements that were measured."""
        return float(sum(proof.recorded_ns for proof in self.proofs))

    @property
    def after_ns(self) -> float:
        """What they would take, and what the recorded inserts would take longer."""
        lost_ns = sum(change.inserts * (change.insert_ns or 0.0) for change in self.changes)
        return sum(proof.after_ns for proof in self.proofs) + lost_ns

    @property
    def curve_ns(self) -> tuple[float, ...]:
        """The recorded time with no change, with the first one, with the first two, and so on."""
        wins = accumulate((change.win_ns for change in self.changes), initial=0.0)
        return tuple(max(self.before_ns - won, 0.0) for won in wins)
