"""Find the recorded statements that can be executed again, with parameter values and recorded
times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from queryprof.analysis.report import Report
from queryprof.analysis.units import average
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.model import Exemplar
from queryprof.operations import FETCH_OPERATIONS
from queryprof.planner.judging import BEFORE, Judge, Measurement, StatementError
from queryprof.planner.values import Values, placeholders, recorded_values, replace_placeholders
from queryprof.proof.accesses import Access, Accesses, NotPrepared, placeholder_marker
from queryprof.proof.index import quote_name
from queryprof.proof.schema import DatabaseSchema
from queryprof.sql.clauses import (
    READS,
    WRITES,
    all_comparisons_of,
    clauses_of,
    first_table,
    verb_of,
)
from queryprof.sql.operands import names_in, operand_text
from queryprof.sql.tokens import Token, tokens_of

MAX_STATEMENTS = 300
CONSIDERED_TIME_SHARE = 0.9995
"""The most expensive statements that together take this share of the recorded time are considered.
"""

LIMIT = 20
"""The value for LIMIT ? if it was not recorded."""

MAX_DRAWN = 1000
"""Statements with more parameters get no drawn values, because each parameter takes a scan of the
statement.
"""

OTHER_ROWS, OTHER_STEPS, OTHER_SUMS, ALIKE_ROWS = 3, 2, 1.3, 10
"""A query with drawn values is not comparable if its rows (plus ALIKE_ROWS) or VM steps differ from
the recording by more than these factors. OTHER_SUMS is for the VM steps of aggregates.
"""

PLACES = (0.17, 0.5, 0.83)
"""The positions in a table from which to draw values; 0 is the first row and 1 the last row."""

RANGE = 0.15
"""The distance between the positions of the two ends of a drawn range."""

PATTERNS = frozenset({"LIKE", "GLOB"})
INSERTS = frozenset({"INSERT", "REPLACE"})


@dataclass(frozen=True, slots=True)
class Sample:
    """A statement with parameter values that can be executed.

    Attributes:
        is_drawn: True if the values come from the database and not from the recording.
        most_rows: the maximum number of rows to fetch; None for all. If the program may have
            stopped early, this is one more than the program read.
    """

    sql: str
    values: Values
    is_drawn: bool
    most_rows: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedStatement:
    """One recorded statement.

    Attributes:
        ns: the recorded time.
        executions: the number of executions.
        rows: the number of returned rows.
        vm_steps: the VM steps per execution; None if unknown.
        samples: empty if the statement cannot be measured; `reason` then has the reason.
        reads_all: True if the program called only fetchall(), and so read to the last row.
    """

    statement: str
    ns: int
    executions: int
    writes: bool
    accesses: tuple[Access, ...] = ()
    samples: tuple[Sample, ...] = ()
    reason: str = ""
    rows: int = 0
    reads_all: bool = False
    vm_steps: float | None = None

    def is_write_using(self, tables: set[str]) -> bool:
        """Return whether the statement is a write that changes or reads one of these tables."""
        return self.writes and any(access.table in tables for access in self.accesses)

    @property
    def inserts_into(self) -> str:
        """Return the table of an INSERT; else ""."""
        is_insert = verb_of(self.statement) in INSERTS
        return clauses_of(self.statement).changed if is_insert else ""


def recorded_queries(
    report: Report, judge: Judge, schema: DatabaseSchema, accesses: Accesses
) -> tuple[RecordedStatement, ...]:
    """Return the statements that took most of the time, longest first, and all inserts."""
    spent: dict[str, list[int]] = {}
    fetches: dict[str, set[str]] = {}
    for one in report.profile.aggregates:
        if verb_of(one.statement) in READS | WRITES:
            sums = spent.setdefault(one.statement, [0, 0, 0, 0, 0])
            sums[2] += one.rows
            sums[3] += one.vm_steps
            sums[4] += one.counted
            if one.operation in FETCH_OPERATIONS:
                fetches.setdefault(one.statement, set()).add(one.operation)
            sums[0] += one.self_ns
            sums[1] += (
                one.rows
                if one.operation == "executemany"
                else one.count * _begins_execution(one.operation)
            )
    exemplars: dict[str, list[Exemplar]] = {}
    for exemplar in report.profile.exemplars:
        exemplars.setdefault(exemplar.statement, []).append(exemplar)
    all_ns = sum(ns for ns, *_ in spent.values()) or 1
    found: list[RecordedStatement] = []
    seen_ns = 0
    for statement, sums in sorted(spent.items(), key=lambda one: -one[1][0]):
        ns, executions, rows, steps, counted = sums
        is_notable = len(found) < MAX_STATEMENTS and seen_ns <= CONSIDERED_TIME_SHARE * all_ns
        if not is_notable and verb_of(statement) not in INSERTS:
            continue
        seen_ns += ns
        writes = verb_of(statement) in WRITES
        reads_all = fetches.get(statement) == {"fetchall"}
        query = RecordedStatement(
            statement,
            ns,
            executions,
            writes,
            rows=rows,
            reads_all=reads_all,
            vm_steps=steps / counted if counted else None,
        )
        found.append(_add_samples(query, exemplars.get(statement, []), judge, schema, accesses))
    return tuple(found)


def unrepresentative_reason(query: RecordedStatement, found: Sequence[Measurement]) -> str:
    """Return why measurements with drawn values do not represent the recorded executions; "" if
    they may.

    Rows or VM steps that differ by a large factor are not representative. For example, both ends of
    a drawn range may come from the same row.
    """
    if not query.samples[0].is_drawn or query.writes or not query.executions:
        return ""
    rows = query.rows / query.executions
    pairs: list[tuple[float, float, float]] = [
        (rows + ALIKE_ROWS, fmean(one.rows for one in found) + ALIKE_ROWS, OTHER_ROWS)
    ]
    steps = [one.vm_steps for one in found if one.vm_steps is not None]
    if steps and query.vm_steps:
        adds_up = clauses_of(query.statement).adds_up  # the number of result rows shows nothing
        pairs.append((query.vm_steps, fmean(steps), OTHER_SUMS if adds_up else OTHER_STEPS))
    if all(max(pair) <= times * max(1.0, min(pair)) for *pair, times in pairs):
        return ""
    return (
        "with values taken from the database it does different work"
        f" ({rows_of(fmean(one.rows for one in found))}; {average(rows)} in the recording): record"
        " with --parameters"
    )


def _begins_execution(operation: str) -> bool:
    return operation in ("execute", "executescript")


def _add_samples(
    query: RecordedStatement,
    exemplars: Sequence[Exemplar],
    judge: Judge,
    schema: DatabaseSchema,
    accesses: Accesses,
) -> RecordedStatement:
    def sampled_query(
        samples: tuple[Sample, ...] = (), used: tuple[Access, ...] = (), reason: str = ""
    ) -> RecordedStatement:
        return replace(query, accesses=used, samples=samples, reason=reason)

    read = _rows_by_values(exemplars)
    recorded = list(read)
    text = recorded[0][0] if recorded else query.statement
    try:
        used = accesses.accesses_of(text)
    except NotPrepared as error:
        missing = re.search(r"no such table: (?:main\.)?(\S+)", str(error))
        if missing and missing[1].lower() in schema.names:
            return sampled_query(reason=f"it reads {missing[1]}, a virtual table")
        return sampled_query(reason=str(error))
    if query.inserts_into:
        return sampled_query((), used, "INSERTs are measured per table, not per statement")
    if recorded:
        chosen = dict.fromkeys((recorded[0], recorded[len(recorded) // 2], recorded[-1]))
        samples = [Sample(one[0], _plain_values(one[1]), False, read[one] + 1) for one in chosen]
        if not query.writes or any(_changes_rows(judge, one) for one in samples):
            return sampled_query(tuple(samples), used)
        # The program already made these changes, so repeating them changes nothing. So draw values
        # from other rows.
    samples = _drawn_samples(query, exemplars, used, judge, schema)
    return sampled_query(
        tuple(samples), used, "" if samples else _unknown_values_reason(query, bool(recorded))
    )


def _drawn_samples(
    query: RecordedStatement,
    exemplars: Sequence[Exemplar],
    used: Sequence[Access],
    judge: Judge,
    schema: DatabaseSchema,
) -> list[Sample]:
    """Return samples with values from the database; empty if the statement needs a LIKE or GLOB
    pattern.
    """
    if _compares_pattern(query.statement):
        return []
    # With other values, a query may return more rows than in the program.
    is_cut = exemplars and not query.reads_all
    most_rows = max(one.rows for one in exemplars) + 1 if is_cut else None
    drawn = dict.fromkeys(_draw_values(query.statement, used, judge, schema))
    return [Sample(sql, values, True, most_rows) for sql, values in drawn]


def _unknown_values_reason(query: RecordedStatement, was_recorded: bool) -> str:
    """Return why there are no values to measure a statement with."""
    if was_recorded:
        return "its changes were already made: use a copy from before the run"
    what = "patterns" if _compares_pattern(query.statement) else "values of its parameters"
    return f"the {what} are unknown: record with --parameters"


def _changes_rows(judge: Judge, sample: Sample) -> bool:
    """Return whether a statement changes rows of the copy. Return True if the statement cannot be
    executed.
    """
    try:
        return judge.count_changed_rows(BEFORE, sample.sql, sample.values) > 0
    except StatementError:
        return True


def _compares_pattern(statement: str) -> bool:
    """Return whether a LIKE or GLOB pattern is a parameter. Its beginning decides whether an index
    helps.
    """
    return any(
        one.operator in PATTERNS and any(token.kind == "parameter" for token in one.right)
        for one in all_comparisons_of(statement)
    )


def _rows_by_values(exemplars: Sequence[Exemplar]) -> dict[tuple[str, tuple[object, ...]], int]:
    """Return the number of rows that executions read. The key is (text, values); keys of the
    slowest executions come first.

    The values are tuples, so that they are hashable.
    """
    found: dict[tuple[str, tuple[object, ...]], int] = {}
    for one in sorted(exemplars, key=lambda exemplar: -exemplar.duration_ns):
        values = recorded_values(one.sql, one.parameters) if one.sql else None
        if one.sql and values is not None:
            is_named = isinstance(values, dict)
            plain = values.items() if isinstance(values, dict) else values
            key = one.sql, (is_named, *plain)
            found[key] = max(found.get(key, 0), one.rows)
    return found


def _plain_values(values: tuple[object, ...]) -> Values:
    is_named, *rest = values
    return dict(rest) if is_named else tuple(rest)  # type: ignore[arg-type]


def _draw_values(
    statement: str, accesses: Sequence[Access], judge: Judge, schema: DatabaseSchema
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield the statement with values from rows at PLACES in its tables."""
    names = placeholders(statement)
    if len(names) > MAX_DRAWN:
        return
    sources = [_value_source(statement, number, accesses, schema) for number in range(len(names))]
    if any(source is None for source in sources):
        return
    sql = replace_placeholders(statement, ["?"] * len(names))
    for place in PLACES if names else PLACES[:1]:
        values: list[object] = []
        rows: dict[tuple[str, float], dict[str, object]] = {}
        met: set[tuple[str, str]] = set()
        for source in sources:
            assert source
            table, expression = source
            if not table or not expression:
                of_table = schema.table(table)
                values.append(int(place * of_table.rows) if of_table else LIMIT)
                continue
            # The second value of a column may be the other end of a range.
            at = place + RANGE if (table, expression) in met else place
            met.add((table, expression))
            row = rows.setdefault((table, at), {})
            if expression not in row:
                row[expression] = _value_at_fraction(judge, schema, table, expression, at)
            value = row[expression]
            values.append(value)
        yield sql, tuple(values)


def _value_source(
    statement: str, number: int, accesses: Sequence[Access], schema: DatabaseSchema
) -> tuple[str, str] | None:
    """Return the table and expression for a placeholder's values.

    If the expression is "", the value is a row number of the table. If the table is also "", the
    value is the number of LIMIT. None means unknown.
    """
    found = [
        (access.table, "rowid" if one.column == "rowid" else quote_name(one.column))
        for access in accesses
        for one in access.comparisons
        if str(one.value).lower() == placeholder_marker(number)
    ]
    if found:
        return max(found, key=lambda one: one[1] != "rowid")
    before = _keyword_before(statement, number)
    if before == "LIMIT":
        return "", ""
    if before == "OFFSET":
        first = first_table(statement)
        return (first if schema.table(first) else ""), ""
    return _compared_operand(statement, number, schema)


def _keyword_before(statement: str, number: int) -> str:
    """Return the keyword before a placeholder; LIMIT for both placeholders of LIMIT ?, ?."""
    tokens = tokens_of(statement)
    place = _parameter_place(tokens, number)
    if place > 2 and tokens[place - 1].text == "," and tokens[place - 3].keyword == "LIMIT":
        place -= 2
    return tokens[place - 1].keyword if place else ""


def _parameter_place(tokens: Sequence[Token], number: int) -> int:
    """Return a placeholder's position among the tokens; 0 if the tokens end before it."""
    places = [place for place, token in enumerate(tokens) if token.kind == "parameter"]
    return places[number] if number < len(places) else 0


def _compared_operand(
    statement: str, number: int, schema: DatabaseSchema
) -> tuple[str, str] | None:
    """Return the table and expression that the statement compares with a placeholder, for
    comparisons that the planner does not report.
    """
    tokens = tokens_of(statement)
    parameter = tokens[_parameter_place(tokens, number)]
    words = {token.named for token in tokens}
    for comparison in all_comparisons_of(statement):
        columns = names_in(comparison.left)
        if parameter not in comparison.right or len(columns) != 1:
            continue
        if any(token.kind != "parameter" and token.text not in "(,)" for token in comparison.right):
            continue  # the placeholder is only a part of the operand
        for table in schema.tables:
            if table.name.lower() in words and table.column(columns[0]) and table.rows:
                expression = operand_text(statement, comparison.left)
                return table.name, expression
    return None


def _value_at_fraction(
    judge: Judge, schema: DatabaseSchema, table: str, expression: str, place: float
) -> object:
    found = schema.table(table)
    if not found or not found.rows:
        return None
    sql = f"SELECT {expression} FROM {quote_name(table)} LIMIT 1 OFFSET ?"
    try:
        return judge.rows(BEFORE, sql, (int(place * (found.rows - 1)),))[0][0]
    except (StatementError, IndexError):
        return None
