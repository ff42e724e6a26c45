"""Findings that need the database's schema: indexes that exist and do not help."""

from __future__ import annotations

import re
from collections.abc import Iterator

from queryprof.analysis.findings.finding import Finding, Severity
from queryprof.analysis.findings.groups import Group
from queryprof.analysis.findings.program import Program
from queryprof.analysis.plans import signs_of
from queryprof.analysis.units import average, counted
from queryprof.model import Index, Schema

STEPS_PER_ROW = 60
LEAST_STEPS = 1000


def index_defeated(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        scanned = {
            name
            for plan in group.plans
            for name in (*signs_of(plan).scans, *signs_of(plan).index_scans)
        }
        totals = group.totals
        read = totals.full_scan_steps or 0.0
        if not scanned or read < 100 or read < 4 * (totals.rows_each or 0):
            continue
        where = re.split(r"\bWHERE\b", group.sql, maxsplit=1, flags=re.IGNORECASE)
        found = _defeated(where[1], _indexes(program, scanned, group)) if len(where) == 2 else None
        guess = None if found else _guessed(where[-1]) if len(where) == 2 else None
        if found:
            index, reason, fix = found
            evidence = (
                f"{index.table} has the index {index.name} ({', '.join(index.columns)}); {reason}"
            )
        elif guess:
            reason, fix = guess
            evidence = reason
        else:
            continue
        yield program.finding(
            "index_defeated",
            group,
            totals.self_ns * (1 - (totals.rows_each or 0) / max(read, 1)),
            (
                (
                    f"{counted(totals.executions, 'execution')} read {average(read)} rows to return"
                    f" {average(totals.rows_each)}"
                ),
                evidence,
            ),
            fix,
            program.loop_of(group),
            doubt="" if found else "Whether an index on the column exists is not known: use --db.",
        )


def _indexes(program: Program, scanned: set[str], group: Group) -> list[Index]:
    aliases = {
        alias: table
        for table, alias in re.findall(r"\b(\w+) (?:AS )?(\w+)\b", group.sql, re.IGNORECASE)
    }
    tables = {name.lower() for name in scanned} | {
        aliases[name].lower() for name in scanned if name in aliases
    }
    return [
        index
        for schema in program.schemas.values()
        for index in schema.indexes
        if index.table.lower() in tables and not index.is_partial
    ]


def _defeated(where: str, indexes: list[Index]) -> tuple[Index, str, str] | None:
    """The index that a WHERE could use, why it does not, and what to do."""
    for index in indexes:
        column = re.escape(index.columns[0])
        name = index.columns[0]
        named = rf"(?:\w+\.)?\"?{column}\"?"
        if found := re.search(
            rf"\b(\w+)\((?:[^()]*,\s*)?{named}\b[^()]*\) ?(?:=|<|>|IN|LIKE|BETWEEN)",
            where,
            re.IGNORECASE,
        ):
            return (
                index,
                f"{found[1]}({name}) is compared, not {name}",
                (
                    f"Compare the column itself, or index the expression:"
                    f" CREATE INDEX ... ON {index.table} ({found[1]}({name}))."
                ),
            )
        if re.search(rf"\b{named} (?:NOT )?(?:LIKE|GLOB)\b", where, re.IGNORECASE):
            return (
                index,
                (
                    f"{name} LIKE needs an index that ignores case, and a pattern that does not begin"
                    " with %"
                ),
                (
                    f"CREATE INDEX ... ON {index.table} ({name} COLLATE NOCASE), and a pattern that"
                    " begins with letters; for words inside of texts use FTS5."
                ),
            )
        if re.search(
            rf"\b{named} COLLATE\b|\b{named} ?(?:=|<|>) ?\S+ COLLATE\b", where, re.IGNORECASE
        ):
            return (
                index,
                f"{name} is compared with another collation than the index has",
                f"Create the index with the collation of the comparison: ({name} COLLATE ...).",
            )
        if re.search(
            rf"\b{named} ?(?:\|\||[-+*/]) ?\S+ ?(?:=|<|>)|\+{named}\b", where, re.IGNORECASE
        ):
            return (
                index,
                f"an expression with {name} is compared, not {name}",
                "Move the arithmetic to the other side, so that the column stands alone.",
            )
        if re.search(rf"\b{named} ?(?:=|==|<|>|IN)", where, re.IGNORECASE):
            return (
                index,
                (
                    f"the types or collations of {name} and of what it is compared with differ, or OR"
                    " joins it with a column without an index"
                ),
                "Declare both columns with one type (and collation), or CAST the other side.",
            )
    return None


def _guessed(where: str) -> tuple[str, str] | None:
    """The same without a schema, where the text alone is a sign."""
    found = re.search(r"\b(lower|upper|date|datetime|strftime|substr|trim|cast|abs|round|ifnull|coalesce)"
                      r"\((?:[^()]*,\s*)?(?:\w+\.)?(\w+)\b[^()]*\) ?(?:=|<|>|IN)", where, re.IGNORECASE)  # fmt: skip
    if found:
        return (
            f"{found[1]}({found[2]}) is compared: an index on {found[2]} cannot be used",
            f"Compare {found[2]} itself, or create an index on the expression.",
        )
    return None


def bad_index_choice(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        totals = group.totals
        steps, rows = totals.vm_steps or 0.0, totals.rows_each or 0.0
        if totals.full_scan_steps or steps < LEAST_STEPS or steps < STEPS_PER_ROW * (rows + 1):
            continue
        used = {
            found[1]
            for plan in group.plans
            for step in plan
            if (found := re.search(r"USING (?:COVERING )?INDEX (\S+)", step))
        }
        for schema in program.schemas.values():
            other = _better(group.sql, used, schema)
            if other and not schema.has_statistics:
                yield program.finding(
                    "bad_index_choice",
                    group,
                    totals.self_ns * (1 - min(1.0, 30 * (rows + 1) / steps)),
                    (
                        (
                            f"{counted(totals.executions, 'execution')} take {average(steps)} VM steps to"
                            f" return {average(rows)} rows by {', '.join(sorted(used))};"
                            f" {other.name} ({', '.join(other.columns)}) fits, too, and SQLite has no"
                            " statistics to choose by"
                        ),
                    ),
                    "Run ANALYZE (or PRAGMA optimize) once the tables are filled.",
                    program.loop_of(group),
                    code="ANALYZE;",
                )
                break


def _better(statement: str, used: set[str], schema: Schema) -> Index | None:
    tables = {index.table for index in schema.indexes if index.name in used}
    for index in schema.indexes:
        column = re.escape(index.columns[0])
        fits = re.search(rf"\b{column}\"? ?(?:=|IN|<|>|BETWEEN)", statement, re.IGNORECASE)
        if index.table in tables and index.name not in used and fits:
            return index
    return None


def redundant_index(program: Program) -> Iterator[Finding | None]:
    for schema in program.schemas.values():
        for index in schema.indexes:
            wider = next(
                (
                    other
                    for other in schema.indexes
                    if other is not index and other.table == index.table and not index.is_unique
                    and not index.is_partial and not other.is_partial
                    and (len(other.columns), other.name) > (len(index.columns), index.name)
                    and other.columns[: len(index.columns)] == index.columns
                ),
                None,
            )  # fmt: skip
            writers = [
                group
                for group in program.groups
                if group.writes
                and re.search(rf"\b{re.escape(index.table)}\b", group.sql, re.IGNORECASE)
            ]
            if wider is None or not writers:
                continue
            of_table = sum(other.table == index.table for other in schema.indexes)
            most = max(writers, key=lambda group: group.totals.self_ns)
            yield program.finding(
                "redundant_index",
                most,
                sum(group.totals.self_ns for group in writers) / (of_table + 1),
                (
                    (
                        f"{index.name} ({', '.join(index.columns)}) is the beginning of {wider.name}"
                        f" ({', '.join(wider.columns)}); each write to {index.table} keeps both"
                    ),
                ),
                f"Drop {index.name}: {wider.name} serves the same queries.",
                code=f"DROP INDEX {index.name};",
                doubt="The gain is an estimate: an equal part of the writes for each index.",
                most=Severity.MEDIUM,
            )
