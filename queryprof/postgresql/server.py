"""A connection of queryprof's own to a PostgreSQL server: it requests plans, reads statistics, and
executes nothing else.

A recorded statement is a stranger's text. The server parses it first by itself, which takes one
statement and no more (https://www.postgresql.org/docs/current/protocol-flow.html, Extended Query);
EXPLAIN without ANALYZE does not execute it. The session is read-only, and each request ends after a
time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from queryprof.errors import QueryprofError
from queryprof.model.postgresql import ServerFacts, ServerPlan, ServerTable, ServerTime
from queryprof.postgresql.numbered import numbered
from queryprof.postgresql.plans import nodes_of, plan_of
from queryprof.postgresql.times import times_of
from queryprof.sql.clauses import verb_of

PLANNED = frozenset({"SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "MERGE"})
MOST_STATEMENTS = 200
MOST_MS = 5000
"""Of one request."""

CONNECT_S = 10
GENERIC_PLAN = 160_000
"""The first version whose EXPLAIN takes parameters without values; before it, from FORCED on, a
prepared statement is made to have a plan for any value.
"""
FORCED = 120_000
QUERY_ID = 140_000

NAME = b"queryprof"

TABLES = """
SELECT n.nspname || '.' || c.relname,
       ARRAY(SELECT lower(a.attname) FROM pg_catalog.pg_attribute AS a
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             ORDER BY a.attnum)::text[],
       c.reltuples::float8,
       s.n_mod_since_analyze,
       greatest(s.last_analyze, s.last_autoanalyze)::date::text
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_stat_all_tables AS s ON s.relid = c.oid
WHERE n.nspname || '.' || c.relname = ANY (%s::text[])
"""

TIMES = """
SELECT queryid, query, calls, total_exec_time * 1e6 FROM {schema}.pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
LIMIT 20000
"""

EXTENSION = """
SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension AS e
JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE extname = 'pg_stat_statements'
"""


def server_facts(
    dsn: str, statements: Iterable[str], *, avoids_seq_scans: bool = False
) -> ServerFacts:
    """What a server says of statements that were sent to PostgreSQL.

    Args:
        dsn: a connection string or URI, as libpq takes it.
        statements: as recorded, those that take most time first.
        avoids_seq_scans: plans have a sequential scan where nothing else is possible, however small
            the tables are (enable_seqscan = off).

    Raises:
        QueryprofError: psycopg is not installed, or the server cannot be used.
    """
    wanted = [one for one in statements if verb_of(one) in PLANNED]
    with _connected(dsn) as server:
        if avoids_seq_scans:
            server.avoid_seq_scans()
        if server.version < FORCED:
            raise QueryprofError(
                f"PostgreSQL {server.version // 10_000} is too old: plans for any"
                " value are known from 12 on"
            )
        answers = {one: server.explained(one) for one in wanted[:MOST_STATEMENTS]}
        documents = {one: answer for one, answer in answers.items() if not isinstance(answer, str)}
        tables = server.tables(
            {node.table for one in documents.values() for node in nodes_of(one["Plan"])} - {""}
        )
        plans = {one: plan_of(document, tables) for one, document in documents.items()}
        times, times_off, since = server.times(plans)
    return ServerFacts(
        server.name,
        plans,
        {one: answer for one, answer in answers.items() if isinstance(answer, str)},
        times,
        times_off,
        since,
        max(0, len(wanted) - MOST_STATEMENTS),
    )


@contextmanager
def _connected(dsn: str) -> Iterator[_Server]:
    try:
        import psycopg
    except ImportError as error:
        raise QueryprofError(
            "a PostgreSQL server's plans need psycopg: pip install 'queryprof[postgresql]'"
        ) from error
    try:
        with psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_S) as connection:
            yield _Server(connection)
    except psycopg.Error as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise QueryprofError(f"the PostgreSQL server cannot be used: {first}") from error


class _Server:
    """A session.

    Args:
        connection: psycopg's, which the caller closes.

    Attributes:
        version: as libpq counts it; name: for people.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.version: int = connection.info.server_version
        major, minor = divmod(self.version, 10_000)
        self.name = f"{major}.{minor}"
        for setting in (
            "default_transaction_read_only = on",
            f"statement_timeout = {MOST_MS}",
            f"lock_timeout = {MOST_MS}",
            "plan_cache_mode = force_generic_plan",
            "client_encoding = 'UTF8'",
        ):
            connection.execute(f"SET {setting}")
        if self.version >= QUERY_ID:
            self._said(b"SET compute_query_id = on")  # "auto" does for who may not set it

    def avoid_seq_scans(self) -> None:
        self._connection.execute("SET enable_seqscan = off")

    def explained(self, statement: str) -> Mapping[str, Any] | str:
        """What EXPLAIN writes of a recorded statement; or why it writes nothing."""
        text = numbered(statement)
        if text is None:
            return "its text is too long or has a zero byte, or it has too many parameters"
        try:
            sql = text[0].encode()
        except UnicodeEncodeError:
            return "its text is no Unicode"
        # Parsed alone first, as one statement: what follows is sent as a text.
        pgconn = self._connection.pgconn
        if reason := _refusal(pgconn.prepare(NAME, sql)):
            return reason
        if self.version >= GENERIC_PLAN:
            request = b"EXPLAIN (GENERIC_PLAN, VERBOSE, FORMAT JSON) " + sql
        else:
            values = b", ".join([b"NULL"] * text[1])
            request = b"EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE " + NAME
            request += b" (" + values + b")" if values else b""
        try:
            answer = pgconn.exec_(request)
            return _refusal(answer) or _document(answer.get_value(0, 0))
        finally:
            self._said(b"DEALLOCATE " + NAME)

    def tables(self, names: Iterable[str]) -> Mapping[str, ServerTable]:
        """What the catalogue has of tables, by their names with schemas."""
        rows = self._connection.execute(TABLES, (sorted(names),)).fetchall()
        return {
            name: ServerTable(
                name,
                tuple(columns),
                float(count) if count >= 0 else None,
                changed,
                analyzed or "",
            )
            for name, columns, count, changed, analyzed in rows
        }

    def times(self, plans: Mapping[str, ServerPlan]) -> tuple[Mapping[str, ServerTime], str, str]:
        """The server's time of statements, why it is not known, and since when it was counted."""
        schema = self._connection.execute(EXTENSION).fetchone()
        if schema is None:
            return {}, "the extension pg_stat_statements is not in this database", ""
        import psycopg

        try:
            rows = self._connection.execute(TIMES.format(schema=schema[0])).fetchall()
            since = self._since(schema[0])
        except psycopg.Error as error:
            first = next(iter(str(error).splitlines()), type(error).__name__)
            return {}, f"pg_stat_statements cannot be read: {first}", ""
        return times_of(plans, rows), "", since

    def _since(self, schema: str) -> str:
        if self.version < QUERY_ID:
            return ""
        text = f"SELECT stats_reset::timestamp(0)::text FROM {schema}.pg_stat_statements_info"
        row = self._connection.execute(text).fetchone()
        return str(row[0]) if row and row[0] else ""

    def _said(self, command: bytes) -> bool:
        """Whether the server took a command of our own."""
        return not _refusal(self._connection.pgconn.exec_(command))


def _document(text: bytes | None) -> Mapping[str, Any] | str:
    """The first plan of what EXPLAIN has written; or why there is none."""
    try:
        document = json.loads(text or b"")[0]
        return document if isinstance(document["Plan"], dict) else "it has no plan"
    except (ValueError, TypeError, LookupError, RecursionError):
        return "its plan cannot be read"


def _refusal(answer: Any) -> str:
    """What an answer's error says; "": it has none."""
    if answer.error_message:
        lines = bytes(answer.error_message).decode("utf-8", "replace").splitlines()
        return next(iter(lines), "").removeprefix("ERROR:").strip() or "an error without a text"
    return ""
