"""A transaction of queryprof's own on a PostgreSQL server: it requests plans, reads statistics, and
executes nothing else.

A recorded statement is a stranger's text. The server first parses it by itself, which takes one
statement and no more (https://www.postgresql.org/docs/current/protocol-flow.html, Extended Query);
EXPLAIN without ANALYZE does not execute it. The transaction is read-only, and each request ends
after a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from queryprof.errors import QueryprofError
from queryprof.model.postgresql import Reference, ServerFacts, ServerPlan, ServerTable, ServerTime
from queryprof.postgresql.numbered import numbered
from queryprof.postgresql.plans import nodes_of, plan_of
from queryprof.postgresql.times import times_of
from queryprof.sql.clauses import verb_of

PLANNED = frozenset({"SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "MERGE"})
MOST_STATEMENTS = 200
MOST_MS = 5000
"""Of one request."""

BUDGET_S = 60
"""For all requests; statements after it are left out, and counted."""

CONNECT_S = 10
GENERIC_PLAN = 160_000
"""The first version whose EXPLAIN takes parameters without values; before it, from FORCED on, a
prepared statement is made to have a plan for any value.
"""
FORCED = 120_000
QUERY_ID = 140_000

NAME = "queryprof_statement"

SAID = ("42", "0A", "26")
"""Classes of errors whose message is about a statement's text and names: syntax and access rules,
unsupported features, prepared statements
(https://www.postgresql.org/docs/current/errcodes-appendix.html)."""

STOPPED = ("57014", "55P03")
"""By a timeout, or a lock."""

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
"""The server's own functions of texts."""

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
    until_s = time.monotonic() + BUDGET_S
    answers: dict[str, Mapping[str, Any] | str] = {}
    with _connected(dsn, avoids_seq_scans) as server:
        for one in wanted[:MOST_STATEMENTS]:
            if time.monotonic() > until_s:
                break
            answers[one] = server.explained(one)
        documents = {one: answer for one, answer in answers.items() if not isinstance(answer, str)}
        tables = server.tables(
            {node.table for one in documents.values() for node in nodes_of(one["Plan"])} - {""}
        )
        immutable = server.immutable()
        plans = {
            one: plan_of(document, tables, (numbered(one) or ("", 0))[1], immutable)
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
def _connected(dsn: str, avoids_seq_scans: bool) -> Iterator[_Server]:
    try:
        import psycopg
    except ImportError as error:
        raise QueryprofError(
            "a PostgreSQL server's plans need psycopg: pip install 'queryprof[postgresql]'"
        ) from error
    try:
        given = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error as error:  # its message may repeat a password
        raise QueryprofError(
            "the PostgreSQL server cannot be used: its connection string has a mistake"
        ) from error
    given.setdefault("connect_timeout", CONNECT_S)
    given["client_encoding"] = "utf8"  # psycopg returns bytes for text in an SQL_ASCII database
    try:
        with psycopg.connect(**given, prepare_threshold=None) as connection:
            yield _Server(connection, avoids_seq_scans)
            connection.rollback()
    except psycopg.Error as error:
        raise QueryprofError(f"the PostgreSQL server cannot be used: {_first(error)}") from error


class _Server:
    """A transaction, with which its settings end: a pooler gives the session to others.

    Args:
        connection: psycopg's, which the caller rolls back and closes.

    Attributes:
        version: as libpq counts it; name: for people.
    """

    def __init__(self, connection: Any, avoids_seq_scans: bool) -> None:
        self._connection = connection
        self.version: int = connection.info.server_version
        major, minor = divmod(self.version, 10_000)
        self.name = f"{major}.{minor}"
        if self.version < FORCED:
            raise QueryprofError(
                f"PostgreSQL {major} is too old: plans for any values are known from 12 on"
            )
        for setting in (
            "TRANSACTION READ ONLY",
            f"LOCAL statement_timeout = {MOST_MS}",
            f"LOCAL lock_timeout = {MOST_MS}",
            "LOCAL plan_cache_mode = force_generic_plan",
            f"LOCAL enable_seqscan = {'off' if avoids_seq_scans else 'on'}",
        ):
            connection.execute(f"SET {setting}")
        if self.version >= QUERY_ID:  # "auto" does for who may not set it
            self._tried("SET LOCAL compute_query_id = on")

    def explained(self, statement: str) -> Mapping[str, Any] | str:
        """What EXPLAIN writes of a recorded statement; or why it writes nothing."""
        text = numbered(statement)
        if text is None:
            return "its text is too long or has a zero byte, or it has too many parameters"
        sql, parameters = text
        # Parsed alone first, as one statement: what follows is sent as a text.
        if reason := self._tried(f"PREPARE {NAME} AS {sql}", is_alone=True):
            return reason
        nulls = ", ".join(["NULL"] * parameters)
        request = (
            f"EXPLAIN (GENERIC_PLAN, VERBOSE, FORMAT JSON) {sql}"
            if self.version >= GENERIC_PLAN
            else f"EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE {NAME}{f'({nulls})' if nulls else ''}"
        )
        answer: list[Any] = []
        reason = self._tried(request, answer)
        self._tried(f"DEALLOCATE {NAME}")
        return reason or _document(answer)

    def tables(self, names: Iterable[str]) -> Mapping[str, ServerTable]:
        """What the catalogue has of tables, by their names with schemas."""
        references: dict[str, dict[Reference, None]] = {}
        for name, table, columns, keys, count, is_partitioned in self._catalogue(REFERENCES, names):
            rows = float(count) if count >= 0 else None
            one = Reference(table, tuple(columns), tuple(keys), rows, is_partitioned)
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

    def immutable(self) -> frozenset[str]:
        """The functions that an index can be on an expression of."""
        return frozenset(name for (name,) in self._catalogue(IMMUTABLE))

    def _catalogue(self, query: str, names: Iterable[str] | None = None) -> list[Any]:
        """The answer of the server's catalogue.

        Args:
            names: the parameter of the query; None: it has none.
        """
        given = None if names is None else (sorted(names),)
        with self._own_names():
            return list(self._connection.execute(query, given).fetchall())

    @contextmanager
    def _own_names(self) -> Iterator[None]:
        """In the block names are those of the server itself: a function or an operator of another
        schema that fits better is not called
        (https://www.postgresql.org/docs/current/typeconv-func.html).
        """
        self._connection.execute("SAVEPOINT queryprof_names")
        self._connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        yield
        self._connection.execute("ROLLBACK TO SAVEPOINT queryprof_names")

    def times(self, plans: Mapping[str, ServerPlan]) -> tuple[Mapping[str, ServerTime], str, str]:
        """The server's time of statements, why it is not known, and since when it was counted."""
        schemas, rows, since = self._catalogue(EXTENSION), list[Any](), list[Any]()
        if not schemas:
            return {}, "the extension pg_stat_statements is not in this database", ""
        with self._own_names():
            reason = self._tried(TIMES.format(schema=schemas[0][0]), rows)
            if not reason and self.version >= QUERY_ID:
                self._tried(SINCE.format(schema=schemas[0][0]), since)
        if reason:
            return {}, f"pg_stat_statements cannot be read: {reason}", ""
        times = times_of(plans, rows)
        is_hidden = not times and any(text == HIDDEN for _, text, _, _ in rows)
        return (
            times,
            "this role may not read other roles' statements (pg_read_all_stats)" * is_hidden,
            str(since[0][0]) if since and since[0][0] else "",
        )

    def _tried(self, command: str, rows: list[Any] | None = None, is_alone: bool = False) -> str:
        """Executes a command, whose failure does not end the transaction; why the server refused
        it, or "".

        Args:
            rows: gets those of its answer.
            is_alone: the server takes one statement of it and no more.
        """
        import psycopg

        self._connection.execute("SAVEPOINT queryprof")
        try:
            # A binary answer is what psycopg uses the extended protocol for.
            cursor = self._connection.execute(command, binary=is_alone)
            if rows is not None:
                rows += cursor.fetchall()
        except UnicodeEncodeError:
            reason = "its text is no Unicode"
        except psycopg.Error as error:
            if self._connection.closed:
                raise
            reason = _reason(error)
        else:
            if command.startswith("SET"):
                return ""
            reason = ""
        self._connection.execute("ROLLBACK TO SAVEPOINT queryprof")  # and gives back its locks
        return reason


def _reason(error: Any) -> str:
    """Why a server refused a statement. What else than its text a message may have (a value that a
    stranger's text has read of a table) is not repeated.
    """
    state = error.sqlstate or ""
    if state[:2] in SAID or state in STOPPED:
        return _first(error)
    return f"the server refused it (SQLSTATE {state or 'unknown'})"


def _first(error: Exception) -> str:
    """The first line of an error."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _document(answer: list[Any]) -> Mapping[str, Any] | str:
    """The first plan of what EXPLAIN has written; or why there is none."""
    try:
        document: dict[str, Any] = answer[0][0][0]
        nodes = nodes_of(document["Plan"])
    except (TypeError, LookupError, AttributeError, RecursionError):
        return "its plan cannot be read"
    if any(node.number("Subplans Removed") for node in nodes):
        return "its plan leaves out partitions, as for NULL: before 16 there is none for any values"
    return document
