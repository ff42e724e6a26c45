"""A transaction on a PostgreSQL server that only requests plans and reads statistics.

A recorded statement may come from a stranger. The server first parses the text with a protocol that
accepts exactly one statement
(https://www.postgresql.org/docs/current/protocol-flow.html, Extended Query).
EXPLAIN without ANALYZE does not execute the statement. The transaction is read-only, and each
request has a timeout.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from queryprof.errors import QueryprofError
from queryprof.model.postgresql import (
    ServerFacts,
    ServerPlan,
    ServerTable,
    ServerTime,
    UnindexedForeignKey,
)
from queryprof.servers.postgresql.numbered import number_parameters
from queryprof.servers.postgresql.plans import parse_plan, plan_nodes
from queryprof.servers.postgresql.times import times_by_statement
from queryprof.sql.clauses import verb_of

PLANNED = frozenset({"SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "MERGE"})
MAX_STATEMENTS = 200
MAX_REQUEST_MS = 5000
"""Timeout of a request in ms."""

BUDGET_S = 60
"""Time limit for all requests. Later statements are skipped and counted."""

CONNECT_S = 10
GENERIC_PLAN = 160_000
"""The first version whose EXPLAIN accepts parameters without values. Between FORCED and this
version, a prepared statement with a forced generic plan is used.
"""
FORCED = 120_000
QUERY_ID = 140_000

NAME = "queryprof_statement"

SAFE_ERROR_CLASSES = ("42", "0A", "26")
"""Classes of errors whose messages contain only the statement's text and names: syntax and access
rules, unsupported features, prepared statements
(https://www.postgresql.org/docs/current/errcodes-appendix.html).
"""

STOPPED = ("57014", "55P03")
"""Error codes of a cancelled statement (timeout) and of an unavailable lock."""

TABLES = """
SELECT n.nspname || '.' || c.relname,
       quote_ident(n.nspname) || '.' || quote_ident(c.relname),
       ARRAY(SELECT ARRAY[lower(a.attname), quote_ident(a.attname), (y.typcategory = 'S')::text]
             FROM pg_catalog.pg_attribute AS a
             JOIN pg_catalog.pg_type AS y ON y.oid = a.atttypid
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             ORDER BY a.attnum),
       c.reltuples::float8,
       s.n_mod_since_analyze,
       greatest(s.last_analyze, s.last_autoanalyze)::date::text,
       c.relkind = 'p'
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_stat_all_tables AS s ON s.relid = c.oid
WHERE n.nspname || '.' || c.relname = ANY (%s::text[])
"""

IMMUTABLE = """
SELECT proname FROM pg_catalog.pg_proc
WHERE prokind = 'f' AND pronamespace = 'pg_catalog'::regnamespace
  AND proargtypes[0] = 'text'::regtype
GROUP BY proname HAVING bool_and(provolatile = 'i')
"""
"""Query for the server's own immutable functions whose first argument is a text."""

REFERENCES = """
SELECT tn.nspname || '.' || t.relname,
       quote_ident(n.nspname) || '.' || quote_ident(c.relname),
       ARRAY(SELECT quote_ident(a.attname)
             FROM unnest(k.conkey) WITH ORDINALITY AS u (number, place)
             JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = u.number
             ORDER BY u.place),
       ARRAY(SELECT lower(a.attname) FROM pg_catalog.pg_attribute AS a
             WHERE a.attrelid = t.oid AND a.attnum = ANY (k.confkey) ORDER BY a.attnum),
       c.reltuples::float8,
       c.relkind = 'p'
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_class AS t ON t.oid = k.confrelid
JOIN pg_catalog.pg_namespace AS tn ON tn.oid = t.relnamespace
JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE k.contype = 'f' AND k.conparentid = 0
  AND tn.nspname || '.' || t.relname = ANY (%s::text[])
  AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_class AS ic ON ic.oid = i.indexrelid
    JOIN pg_catalog.pg_am AS m ON m.oid = ic.relam
    WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL
      AND m.amname IN ('btree', 'hash')
      AND (i.indkey::int2[])[0:cardinality(k.conkey) - 1] @> k.conkey)
ORDER BY 1, 2, 3
"""

TIMES = """
SELECT queryid, query, calls, total_exec_time * 1e6 FROM {schema}.pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
LIMIT 20000
"""
SINCE = "SELECT stats_reset::timestamp(0)::text FROM {schema}.pg_stat_statements_info"
HIDDEN = "<insufficient privilege>"

EXTENSION = """
SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension AS e
JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE extname = 'pg_stat_statements'
"""


def server_facts(
    dsn: str, statements: Iterable[str], *, avoids_seq_scans: bool = False
) -> ServerFacts:
    """Return a server's facts about statements that were sent to PostgreSQL.

    Args:
        dsn: a connection string or URI for libpq.
        statements: recorded statements, most time first.
        avoids_seq_scans: use a sequential scan only if nothing else is possible, however small the
            tables are (enable_seqscan = off).

    Raises:
        QueryprofError: psycopg is not installed, or the server cannot be used.
    """
    wanted = [one for one in statements if verb_of(one) in PLANNED]
    until_s = time.monotonic() + BUDGET_S
    answers: dict[str, Mapping[str, Any] | str] = {}
    with _connect(dsn, avoids_seq_scans) as server:
        for one in wanted[:MAX_STATEMENTS]:
            if time.monotonic() > until_s:
                break
            answers[one] = server.explain(one)
        documents = {one: answer for one, answer in answers.items() if not isinstance(answer, str)}
        tables = server.tables(
            {node.table for one in documents.values() for node in plan_nodes(one["Plan"])} - {""}
        )
        immutable = server.immutable_functions()
        plans = {
            one: parse_plan(document, tables, (number_parameters(one) or ("", 0))[1], immutable)
            for one, document in documents.items()
        }
        times, times_off, since = server.times(plans)
    return ServerFacts(
        server.name,
        plans,
        {one: answer for one, answer in answers.items() if isinstance(answer, str)},
        times,
        times_off,
        since,
        len(wanted) - len(answers),
    )


@contextmanager
def _connect(dsn: str, avoids_seq_scans: bool) -> Iterator[_ServerTransaction]:
    try:
        import psycopg
    except ImportError as error:
        raise QueryprofError(
            "a PostgreSQL server's plans need psycopg: in a clone of queryprof, run"
            " pip install '.[postgresql]'"
        ) from error
    try:
        given = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error as error:  # the message may repeat a password
        raise QueryprofError(
            "the PostgreSQL server cannot be used: its connection string has a mistake"
        ) from error
    given.setdefault("connect_timeout", CONNECT_S)
    given["client_encoding"] = "utf8"  # psycopg returns bytes for text in an SQL_ASCII database
    try:
        with psycopg.connect(**given, prepare_threshold=None) as connection:
            yield _ServerTransaction(connection, avoids_seq_scans)
            connection.rollback()
    except psycopg.Error as error:
        raise QueryprofError(
            f"the PostgreSQL server cannot be used: {_first_line(error)}"
        ) from error


class _ServerTransaction:
    """A transaction. Its settings end with the transaction, because a pooler may give the session
    to other programs.

    Args:
        connection: psycopg's connection, which the caller rolls back and closes.

    Attributes:
        version: the server's version as libpq's number, such as 160002.
        name: the version for display, such as "16.2".
    """

    def __init__(self, connection: Any, avoids_seq_scans: bool) -> None:
        self._connection = connection
        self.version: int = connection.info.server_version
        major, minor = divmod(self.version, 10_000)
        self.name = f"{major}.{minor}"
        if self.version < FORCED:
            raise QueryprofError(
                f"PostgreSQL {major} is too old: generic plans need version 12 or newer"
            )
        for setting in (
            "TRANSACTION READ ONLY",
            f"LOCAL statement_timeout = {MAX_REQUEST_MS}",
            f"LOCAL lock_timeout = {MAX_REQUEST_MS}",
            "LOCAL plan_cache_mode = force_generic_plan",
            f"LOCAL enable_seqscan = {'off' if avoids_seq_scans else 'on'}",
        ):
            connection.execute(f"SET {setting}")
        if self.version >= QUERY_ID:  # users who may not set this option have "auto"
            self._try_command("SET LOCAL compute_query_id = on")

    def explain(self, statement: str) -> Mapping[str, Any] | str:
        """Return EXPLAIN's output for a recorded statement, or the reason why there is none."""
        text = number_parameters(statement)
        if text is None:
            return "its text is too long or has a zero byte, or it has too many parameters"
        sql, parameters = text
        # Parse the text alone first, because the request below would run several statements.
        if reason := self._try_command(f"PREPARE {NAME} AS {sql}", is_alone=True):
            return reason
        nulls = ", ".join(["NULL"] * parameters)
        request = (
            f"EXPLAIN (GENERIC_PLAN, VERBOSE, FORMAT JSON) {sql}"
            if self.version >= GENERIC_PLAN
            else f"EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE {NAME}{f'({nulls})' if nulls else ''}"
        )
        answer: list[Any] = []
        reason = self._try_command(request, answer)
        self._try_command(f"DEALLOCATE {NAME}")
        return reason or _plan_document(answer)

    def tables(self, names: Iterable[str]) -> Mapping[str, ServerTable]:
        """Return the catalogue's data on tables, by name with schema."""
        references: dict[str, dict[UnindexedForeignKey, None]] = {}
        for name, table, columns, keys, count, is_partitioned in self._catalogue(REFERENCES, names):
            rows = float(count) if count >= 0 else None
            one = UnindexedForeignKey(table, tuple(columns), tuple(keys), rows, is_partitioned)
            references.setdefault(name, {}).setdefault(one)
        return {
            name: ServerTable(
                name,
                quoted,
                tuple((small, column, is_text == "true") for small, column, is_text in columns),
                float(count) if count >= 0 else None,
                changed,
                analyzed or "",
                tuple(references.get(name, ())),
                is_partitioned,
            )
            for name, quoted, columns, count, changed, analyzed, is_partitioned in self._catalogue(
                TABLES, names
            )
        }

    def immutable_functions(self) -> frozenset[str]:
        """Return the functions that can be used in an index expression."""
        return frozenset(name for (name,) in self._catalogue(IMMUTABLE))

    def _catalogue(self, query: str, names: Iterable[str] | None = None) -> list[Any]:
        """Query the server's catalogue.

        Args:
            names: the parameter of the query; None without one.
        """
        given = None if names is None else (sorted(names),)
        with self._resolving_own_names():
            return list(self._connection.execute(query, given).fetchall())

    @contextmanager
    def _resolving_own_names(self) -> Iterator[None]:
        """Resolve names only in the server's own schema during the block.

        Otherwise PostgreSQL could call a better matching function or operator of another schema
        (https://www.postgresql.org/docs/current/typeconv-func.html).
        """
        self._connection.execute("SAVEPOINT queryprof_names")
        self._connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        yield
        self._connection.execute("ROLLBACK TO SAVEPOINT queryprof_names")

    def times(self, plans: Mapping[str, ServerPlan]) -> tuple[Mapping[str, ServerTime], str, str]:
        """Return the server's times by statement, the reason why they are unknown or "", and when
        the server last reset its statistics or "".
        """
        schemas, rows, since = self._catalogue(EXTENSION), list[Any](), list[Any]()
        if not schemas:
            return {}, "the extension pg_stat_statements is not in this database", ""
        with self._resolving_own_names():
            reason = self._try_command(TIMES.format(schema=schemas[0][0]), rows)
            if not reason and self.version >= QUERY_ID:
                self._try_command(SINCE.format(schema=schemas[0][0]), since)
        if reason:
            return {}, f"pg_stat_statements cannot be read: {reason}", ""
        times = times_by_statement(plans, rows)
        is_hidden = not times and any(text == HIDDEN for _, text, _, _ in rows)
        return (
            times,
            "this role may not read other roles' statements (pg_read_all_stats)" * is_hidden,
            str(since[0][0]) if since and since[0][0] else "",
        )

    def _try_command(
        self, command: str, rows: list[Any] | None = None, is_alone: bool = False
    ) -> str:
        """Execute a command. A failure does not end the transaction.

        Returns why the server refused the command, or "".

        Args:
            rows: receives the rows of the answer.
            is_alone: make the server refuse a text with several statements.
        """
        import psycopg

        self._connection.execute("SAVEPOINT queryprof")
        try:
            # psycopg uses the extended protocol for binary answers.
            cursor = self._connection.execute(command, binary=is_alone)
            if rows is not None:
                rows += cursor.fetchall()
        except UnicodeEncodeError:
            reason = "its text is not valid Unicode"
        except psycopg.Error as error:
            if self._connection.closed:
                raise
            reason = _refusal_reason(error)
        else:
            if command.startswith("SET"):
                return ""
            reason = ""
        self._connection.execute("ROLLBACK TO SAVEPOINT queryprof")  # this also releases its locks
        return reason


def _refusal_reason(error: Any) -> str:
    """Return why a server refused a statement.

    An error message may contain more than the statement's text, such as a value that a stranger's
    statement read from a table. The result does not repeat such a message.
    """
    state = error.sqlstate or ""
    if state[:2] in SAFE_ERROR_CLASSES or state in STOPPED:
        return _first_line(error)
    return f"the server refused it (SQLSTATE {state or 'unknown'})"


def _first_line(error: Exception) -> str:
    """Return the first line of an error."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _plan_document(answer: list[Any]) -> Mapping[str, Any] | str:
    """Return the first plan in EXPLAIN's output, or the reason why there is none."""
    try:
        document: dict[str, Any] = answer[0][0][0]
        nodes = plan_nodes(document["Plan"])
    except (TypeError, LookupError, AttributeError, RecursionError):
        return "its plan cannot be read"
    if any(node.numeric_property("Subplans Removed") for node in nodes):
        return "its plan omits partitions, as for NULL; PostgreSQL 16 and newer have generic plans"
    return document
