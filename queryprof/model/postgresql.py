"""Facts about recorded statements that queryprof requests from a PostgreSQL server after the
run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableScan:
    """A table that a plan reads in full.

    Attributes:
        table: the table's name, with its schema.
        index: the index that the scan reads; "" if it reads the table.
        filter: the condition on the scanned rows, as the server prints it; "" if there is none.
        equals: the columns, as SQL, that the filter compares with a value for equality.
        rows: expected number of rows per loop after the filter.
        table_rows: number of rows in the table, according to the server's statistics; None if never
            analyzed.
        loops: expected number of scans per execution.
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
    """A foreign key without an index on its columns.

    Attributes:
        table, columns: the referring table and its columns, as SQL.
        keys: the referenced columns, in lower case.
        rows: number of rows in the referring table, according to the statistics; None if never
            analyzed.
        is_partitioned: whether CREATE INDEX CONCURRENTLY is impossible.
    """

    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    rows: float | None
    is_partitioned: bool = False


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A table of the server, with the age of its planner statistics.

    Attributes:
        name: the table's name, with its schema.
        quoted: the name as SQL.
        columns: for each column, its name in lower case, its name as SQL, and whether it has a text
            type.
        rows: the number of rows, according to the statistics; None if never analyzed.
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
    """The generic plan of a statement, which does not depend on parameter values.

    Attributes:
        steps: (depth, description) of each node, from the top.
        rows: expected number of returned rows.
        parameters: number of parameters in the text.
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
    """A statement's figures in pg_stat_statements, which cover all programs since the last reset.

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
        plans, times: the plan and server time of each recorded statement.
        refused: for each statement without a plan, the reason.
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
