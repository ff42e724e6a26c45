"""Measure rewritten statements: execute both texts by turns on one copy, and compare their rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from sqlglot.errors import SqlglotError

from queryprof.findings.finding import Finding
from queryprof.model.advice import Cost, Rewrite
from queryprof.planner.judging import AFTER, BEFORE, Judge, Measurement, OutOfTime, StatementError
from queryprof.proof.costs import is_less_work, mean_cost, total_cost
from queryprof.proof.index_search import ChangeSearch
from queryprof.proof.joining import join_queries
from queryprof.proof.rewriting import (
    RewriteTrial,
    Rewriting,
    Text,
    comparison_rewritings,
    keyset_rewritings,
)
from queryprof.proof.workload import RecordedStatement

ROUNDS, LONG_NS = 5, 300_000_000
FASTER = 0.8
"""A useful rewrite takes less than this share of the original statement's time."""

MIN_INDEX_SPEEDUP = 3
"""If the proposed indexes make the original statement this many times faster than the rewrite, the
rewrite is dropped.
"""

MIN_ROWS, MAX_ROWS = 10, 200
"""The minimum and maximum number of outer rows of an N+1 for which to execute the inner query."""

COMPARISON_CATEGORIES = frozenset({"index_defeated", "full_scan", "automatic_index", "n_plus_one"})


def faster_rewrites(search: ChangeSearch, findings: Sequence[Finding]) -> tuple[Rewrite, ...]:
    """Return the rewrites that are faster and return the same rows, in the order of the
    findings.
    """
    found: dict[str, Rewrite] = {}
    with contextlib.suppress(OutOfTime, KeyboardInterrupt):
        measured = {query.statement for query in search.queries}
        queries = {query.statement: query for query in search.all_queries}
        for finding in findings:
            query = queries.get(finding.statement)
            if (
                query
                and query.statement in measured
                and not query.writes
                and query.statement not in found
            ):
                best = _fastest_rewrite(search, query, _rewritings_to_try(search, finding, queries))
                if best:
                    found[query.statement] = best
    return tuple(found.values())


def _rewritings_to_try(
    search: ChangeSearch, finding: Finding, queries: Mapping[str, RecordedStatement]
) -> Iterator[Rewriting]:
    """Yield the rewrites to try for a finding."""
    judge = search.judge

    def rows(sql: str, values: object) -> list[tuple[object, ...]]:
        return judge.rows(BEFORE, sql, values)

    samples = queries[finding.statement].samples
    parent = queries.get(finding.parent)
    # A statement may nest too deeply for sqlglot.
    with contextlib.suppress(StatementError, SqlglotError, RecursionError):
        if finding.category == "offset_pagination":
            yield from keyset_rewritings(samples, search.schema, rows)
        query = queries[finding.statement]
        if parent and parent.samples and not parent.writes and parent.rows >= query.executions:
            each_ns = search.base_ns(query)
            most_rows = max(MIN_ROWS, min(MAX_ROWS, round(LONG_NS / max(each_ns, 1))))
            rows_each = query.rows / max(query.executions, 1)
            yield from join_queries(
                parent.samples[0],
                samples,
                lambda one: _column_names(judge, *one),
                lambda table, column: _is_unique(search, table, column),
                rows,
                most_rows,
                rows_each,
            )
        if finding.category in COMPARISON_CATEGORIES:
            yield from comparison_rewritings(samples, search.schema, rows)


UNIQUE = """
SELECT x.coll FROM pragma_index_list(?1) AS i, pragma_index_xinfo(i.name) AS x
WHERE i."unique" AND NOT i.partial AND x.seqno = 0 AND x.name = ?2 COLLATE NOCASE
  AND (SELECT count(*) FROM pragma_index_info(i.name)) = 1
"""
"""The collations of a table's unique indexes with a single column."""


def _is_unique(search: ChangeSearch, table: str, column: str) -> bool:
    """Return whether a constraint or unique index keeps duplicates out of a column."""
    known = search.schema.table(table)
    one = known.column(column) if known else None
    if not known or not one:
        return False
    if known.key == (one.name,) and (one.is_rowid or not known.has_rowid):
        return True
    found = search.judge.rows(BEFORE, UNIQUE, (known.name, one.name))
    return any(collation == (one.collation or "BINARY") for (collation,) in found)


def _column_names(judge: Judge, sql: str, values: object) -> list[str]:
    """Return the names of a query's columns."""
    empty = (
        f"CREATE TEMP TABLE queryprof_columns AS SELECT * FROM ({sql.strip().rstrip(';')}) LIMIT 0"
    )
    judge.rows(BEFORE, empty, values)
    listed = judge.rows(BEFORE, "SELECT name FROM pragma_table_info('queryprof_columns')")
    judge.execute(BEFORE, "DROP TABLE temp.queryprof_columns")
    return [str(name) for (name,) in listed]


def _fastest_rewrite(
    search: ChangeSearch, query: RecordedStatement, rewritings: Iterator[Rewriting]
) -> Rewrite | None:
    """Return the fastest rewrite on the unchanged database or, if none is faster there, on the
    changed copy.
    """
    tried = list(rewritings)
    for copy in (BEFORE, AFTER):
        found = [
            one for rewriting in tried if (one := _measure_rewrite(search, query, copy, rewriting))
        ]
        if found:
            return min(found, key=lambda one: one.after.ns)
    return None


def _measure_rewrite(
    search: ChangeSearch, query: RecordedStatement, copy: str, rewriting: Rewriting
) -> Rewrite | None:
    """Return a rewrite with its costs if it is faster and returns the same rows; else None."""
    costs: list[tuple[Cost, Cost]] = []
    with contextlib.suppress(StatementError):
        for turn in rewriting.turns:
            if not _has_equal_rows(search.judge, copy, turn):
                return None
            costs.append(_least_times(search.judge, copy, turn))
        before, after = (mean_cost([pair[side] for pair in costs]) for side in (0, 1))
        if (
            copy == BEFORE
            and MIN_INDEX_SPEEDUP * _original_ns_after_changes(search.judge, rewriting) <= after.ns
        ):
            return None  # a proposed index saves much more
        if after.ns < FASTER * before.ns and is_less_work(before, after) is not False:
            return Rewrite(
                query.statement,
                rewriting.sql,
                rewriting.how,
                before,
                after,
                copy == AFTER,
                len(costs),
                query.samples[0].is_drawn,
            )
    return None


def _original_ns_after_changes(judge: Judge, rewriting: Rewriting) -> float:
    """Return the mean time (ns) of the original statements on the changed copy, from the fastest of
    several rounds.
    """
    found = [
        min(
            total_cost([_execute_once(judge, AFTER, text) for text in turn.before]).ns
            for _ in range(ROUNDS)
        )
        for turn in rewriting.turns
    ]
    return sum(found) / max(len(found), 1)


def _has_equal_rows(judge: Judge, copy: str, turn: RewriteTrial) -> bool:
    if turn.expected is not None:
        found = judge.rows(copy, *turn.after)
        return sorted(map(repr, found)) == sorted(map(repr, turn.expected))
    digests = {_execute_once(judge, copy, text).digest for text in (*turn.before, turn.after)}
    return len(digests) == 1


def _execute_once(judge: Judge, copy: str, text: Text) -> Measurement:
    return judge.measure([copy], *text, False, 1, 0)[copy]


def _least_times(judge: Judge, copy: str, turn: RewriteTrial) -> tuple[Cost, Cost]:
    """Return the costs before and after, each from the fastest of several alternating rounds."""
    rounds: list[tuple[Cost, Cost]] = []
    while len(rounds) < ROUNDS and sum(before.ns for before, _ in rounds) < LONG_NS:
        before, after = (
            total_cost([_execute_once(judge, copy, text) for text in texts])
            for texts in (turn.before, (turn.after,))
        )
        rounds.append((before, after))
    before, after = (min((one[side] for one in rounds), key=lambda c: c.ns) for side in (0, 1))
    return before, after
