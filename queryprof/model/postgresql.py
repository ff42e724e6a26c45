"""What a PostgreSQL server says of recorded statements, after the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableScan:
    """A table that a plan reads from end to end.

    Attributes:
        table: with its schema. index: along which it is read; "": along none.
        filter: the condition on its rows, in the server's words; "": all are taken.
        equals: columns, as SQL, that it compares with a value for equality.
        rows: that the planner expects to be left by it, each time.
        table_rows: of the table, by the server's statistics; None: it was never analyzed.
        loops: how often an execution reads it, as the planner expects.
        share: of the plan's cost, 0 to 1.
    """

    table: str
    index: str
    filter: str
    equals: tuple[str, ...]
    rows: float
    table_rows: float | None
    loops: float
    share: float


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key that refers to a table, without an index on its columns.

    Attributes:
        table: that refers, and columns: both as SQL.
        keys: the columns that it refers to, in small letters.
        rows: of it, by the statistics; None: it was never analyzed.
        is_partitioned: no index of it is made CONCURRENTLY.
    """

    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    rows: float | None
    is_partitioned: bool = False


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A table, and how old the figures are by which the planner chooses.

    Attributes:
        name: with its schema; quoted: the same as SQL.
        columns: in small letters, as SQL, and whether its type is one of texts.
        rows: by the statistics; None: it was never analyzed.
        changed: rows changed since; None: it is not known.
        analyzed: when, as a date; "": never.
        references: foreign keys that refer to it, without an index.
        is_partitioned: no index of it is made CONCURRENTLY.
    """

    name: str
    quoted: str
    columns: tuple[tuple[str, str, bool], ...]
    rows: float | None
    changed: int | None
    analyzed: str
    references: tuple[Reference, ...] = ()
    is_partitioned: bool = False


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """The plan of a statement for any values of its parameters.

    Attributes:
        steps: the nodes, from the top: how deep, and what is done.
        rows: that the planner expects to be returned.
        parameters: values that its text has none of.
        scans: tables that are read from end to end; tables: all that are read.
        query_id: by which pg_stat_statements knows it; None: the server computes none.
    """

    steps: tuple[tuple[int, str], ...]
    rows: float
    parameters: int
    scans: tuple[TableScan, ...]
    tables: tuple[ServerTable, ...]
    query_id: int | None


@dataclass(frozen=True, slots=True)
class ServerTime:
    """What pg_stat_statements has of a statement: of all programs, since its last reset.

    Attributes:
        calls: how many; mean_ns: the server's time for each.
    """

    calls: int
    mean_ns: float


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says.

    Attributes:
        version: the server's; "": none was requested.
        plans, times: by recorded statement.
        refused: by statement why its plan is unknown.
        times_off: why no times are known; "": they are.
        since: when pg_stat_statements was reset; "": it is not known.
        left_out: how many statements of PostgreSQL no plan was requested of, as there were many.
    """

    version: str = ""
    plans: Mapping[str, ServerPlan] = field(default_factory=dict, hash=False)
    refused: Mapping[str, str] = field(default_factory=dict, hash=False)
    times: Mapping[str, ServerTime] = field(default_factory=dict, hash=False)
    times_off: str = ""
    since: str = ""
    left_out: int = 0


NO_SERVER = ServerFacts()
