"""Facts from a PostgreSQL server about recorded statements, requested after the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableScan:
    """A table that a plan reads in full.

    Attributes:
        table: the table's name, with its schema.
        index: the index used for reading; "" without one.
        filter: the condition on its rows, as the server prints it; "" for all rows.
        equals: columns, as SQL, that are compared with a value for equality.
        rows: expected number of rows per loop after the filter.
        table_rows: number of rows in the table, by the server's statistics; None if never analyzed.
        loops: expected number of reads per execution.
        share: the scan's share of the plan's cost, 0 to 1.
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
class UnindexedForeignKey:
    """A foreign key to a table, without an index on its columns.

    Attributes:
        table, columns: the referring table and its columns, as SQL.
        keys: the referred columns, in lower case.
        rows: rows of the referring table, by the statistics; None if never analyzed.
        is_partitioned: whether CREATE INDEX CONCURRENTLY is impossible.
    """

    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    rows: float | None
    is_partitioned: bool = False


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A table, and the age of the statistics that the planner uses.

    Attributes:
        name: the table's name, with its schema.
        quoted: the name as SQL.
        columns: (name in lower case, SQL, has a text type) of each column.
        rows: the number of rows, by the statistics; None if never analyzed.
        changed: rows changed since the last ANALYZE; None if unknown.
        analyzed: date of the last ANALYZE; "" if never.
        references: foreign keys to this table without an index.
        is_partitioned: whether CREATE INDEX CONCURRENTLY is impossible.
    """

    name: str
    quoted: str
    columns: tuple[tuple[str, str, bool], ...]
    rows: float | None
    changed: int | None
    analyzed: str
    references: tuple[UnindexedForeignKey, ...] = ()
    is_partitioned: bool = False


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """The generic plan of a statement, for any parameter values.

    Attributes:
        steps: (depth, description) of each node, from the top.
        rows: expected number of returned rows.
        parameters: number of parameters that have no value in the text.
        scans: tables that are read in full.
        tables: all tables that are read.
        query_id: the statement's id in pg_stat_statements; None if the server computes none.
    """

    steps: tuple[tuple[int, str], ...]
    rows: float
    parameters: int
    scans: tuple[TableScan, ...]
    tables: tuple[ServerTable, ...]
    query_id: int | None


@dataclass(frozen=True, slots=True)
class ServerTime:
    """A statement's figures in pg_stat_statements: from all programs, since the last reset.

    Attributes:
        calls: number of calls.
        mean_ns: mean server time per call.
    """

    calls: int
    mean_ns: float


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts from a server.

    Attributes:
        version: the server's version; "" without a server.
        plans, times: by recorded statement.
        refused: why a plan is unknown, by statement.
        times_off: why times are unknown; "" if known.
        since: when pg_stat_statements was reset; "" if unknown.
        left_out: number of statements whose plan was not requested because there were too many.
    """

    version: str = ""
    plans: Mapping[str, ServerPlan] = field(default_factory=dict, hash=False)
    refused: Mapping[str, str] = field(default_factory=dict, hash=False)
    times: Mapping[str, ServerTime] = field(default_factory=dict, hash=False)
    times_off: str = ""
    since: str = ""
    left_out: int = 0


NO_SERVER = ServerFacts()
