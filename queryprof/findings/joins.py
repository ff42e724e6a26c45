"""Findings about joins that multiply rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from queryprof.analysis.plans import Steps, plan_signs
from queryprof.analysis.units import (
    average,
    counted,
    each_if_several,
    rows_in_words,
    scanned_rows_in_words,
)
from queryprof.findings import shares
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.program import Program
from queryprof.findings.work import ONCE
from queryprof.sql.clauses import tables_by_alias
from queryprof.sql.tokens import Token, tokens_of

JOIN_STEPS = 9
"""VM steps per joined row. A row that a search finds and DISTINCT drops takes 6 to 11 (SQLite 3.40,
two tables, with and without a condition on the second table).
"""

MULTIPLIED = 10
"""The fewest joined rows per row that DISTINCT keeps. With 5, 10, 20 and 200 joined rows, EXISTS
saved 0.36 to 0.54, 0.50 to 0.73, 0.45 to 0.83 and 0.95 to 0.99 of the query's time.
"""

IN_FEW = "The query begins with {table}. If few of its rows match, EXISTS is slower: measure both."

EXISTS = (
    "Replace the join with {tables} by WHERE EXISTS (SELECT 1 FROM ... WHERE ...): SQLite then"
    " stops at the first match. Keep DISTINCT only if result rows may still repeat."
)
EXISTS_FIX_BY_LIBRARY = {
    "django": (
        "Replace the filter across the relation, and `.distinct()`, by"
        ' `.filter(Exists(Related.objects.filter(parent=OuterRef("pk"), ...)))`: SQLite then stops'
        " at the first match."
    ),
    "sqlalchemy": (
        "Replace `.join()` and `.distinct()` by `.where(Parent.relation.any(...))`: this is an"
        " EXISTS, which stops at the first match."
    ),
}
"""The fix, by library."""


def find_duplicates_from_joins(program: Program) -> Iterator[Finding | None]:
    """Find queries that join tables only to filter, and remove the duplicates with DISTINCT."""
    for group in program.groups:
        totals = group.totals
        rows = totals.rows_each or 0.0
        if not group.reads or totals.executions <= ONCE:
            continue
        selected = _selected_tables(tokens_of(group.statement))
        joined = [_tables_only_joined(plan, selected) for plan in group.plans if selected]
        if not joined or not all(joined):
            continue
        library = program.library(group.statement)
        tables = ", ".join(dict.fromkeys(name for names in joined for name in names))
        first = next((name for plan in group.plans for name in _loop_steps_by_table(plan)), "")
        is_first = any(first in names for names in joined)
        made = (totals.vm_steps or 0.0) / JOIN_STEPS
        if not is_first:  # the selected table's scan reads each row once
            made -= totals.full_scan_steps or 0.0
        if made < MULTIPLIED * max(1.0, rows):
            continue
        yield program.make_finding(
            "duplicate_rows",
            group,
            group.steady_ns * (1 - shares.needed_vm_steps_share(totals)),
            (
                (
                    f"{counted(totals.executions, 'execution')} took"
                    f" {average(totals.vm_steps)} VM steps{each_if_several(totals.executions)} to"
                    f" return {rows_in_words(rows)}; DISTINCT drops the repeated rows"
                ),
                f"the query selects no column of {tables}",
            ),
            EXISTS_FIX_BY_LIBRARY.get(library, EXISTS).format(tables=tables),
            program.innermost_loop(group),
            doubt=IN_FEW.format(table=first) if is_first else "",
            most=Severity.MEDIUM if is_first else Severity.HIGH,
        )


PAIR = 2
IF_MISSING = ("IF", "NOT", "EXISTS")

REMOVE = "Remove {table} from the query, or add the condition that joins it."


def find_unused_joins(program: Program) -> Iterator[Finding | None]:
    """Find queries that combine their rows with each row of a table whose columns they do not
    use.
    """
    for group in program.groups:
        rows, steps = group.totals.rows_each or 0.0, group.totals.vm_steps or 0.0
        if not group.reads or steps < MULTIPLIED * JOIN_STEPS * max(1.0, rows):
            continue
        scanned = {name for plan in group.plans for name in _scanned_in_join(plan)}
        read = program.planner.tables(group.statement) if scanned else frozenset()
        unused = sorted(scanned & _tables_without(read, group.statement)) if read else []
        if not unused:
            continue
        yield program.make_finding(
            "duplicate_rows",
            group,
            group.steady_ns * (1 - shares.needed_vm_steps_share(group.totals)),
            (
                (
                    f"the query uses no column of {', '.join(unused)}, so SQLite combines each row"
                    " of the other tables with each row of that table"
                ),
            ),
            REMOVE.format(table=", ".join(unused)),
            program.innermost_loop(group),
        )


READ_FOR_ONE = 100
"""The fewest rows that a join reads per returned row. The margin is wide because the temporary
table may have more rows than are returned.
"""
BEGIN_WITH = (
    "SQLite has no statistics of the temporary table {table}. Begin the join with that table: FROM"
    " {table} CROSS JOIN {first} (SQLite keeps this order). For a few keys, write WHERE ... IN"
    " (SELECT value FROM json_each(?)) instead of a temporary table."
)


def find_joins_from_large_tables(program: Program) -> Iterator[Finding | None]:
    """Find joins that read all rows of one table and find few of them in a temporary table."""
    temporary = set(_temporary_tables(program))
    for group in program.groups:
        read, returned = (
            group.totals.full_scan_steps or 0.0,
            max(1.0, group.totals.rows_each or 0.0),
        )
        clauses = group.clauses
        if not group.reads or group.totals.executions <= ONCE or read < READ_FOR_ONE * returned:
            continue
        if clauses.chooses or clauses.groups or clauses.adds_up or clauses.limits:
            continue
        words = [one.keyword for one in tokens_of(group.statement)]
        if "DISTINCT" in words:
            continue
        orders = {tuple(_loop_steps_by_table(plan).items()) for plan in group.plans}
        if len(orders) != 1 or len(loops := next(iter(orders))) != PAIR:
            continue
        (first, scan), (table, search) = loops
        table = tables_by_alias(group.statement).get(table, table)
        if not scan.startswith("SCAN") or not search.startswith("SEARCH"):
            continue
        if table.lower() not in temporary:
            continue
        yield program.make_finding(
            "full_scan",
            group,
            group.steady_ns * (1 - shares.needed_vm_steps_share(group.totals)),
            (
                (
                    f"{counted(group.totals.executions, 'execution')} read all"
                    f" {scanned_rows_in_words(read)} of {first} to find {average(returned)} of"
                    f" them in {table}"
                ),
                scan,
            ),
            BEGIN_WITH.format(table=table, first=first),
            program.innermost_loop(group),
            doubt=f"It is unknown how many rows {table} has.",
            most=Severity.MEDIUM,
        )


def _temporary_tables(program: Program) -> Iterator[str]:
    """Yield the names of the temporary tables that the program creates, in lower case."""
    for group in program.all_groups:
        tokens = tokens_of(group.statement)
        words = [one.keyword for one in tokens]
        is_made = words[:1] == ["CREATE"] and words[1:2] in (["TEMP"], ["TEMPORARY"])
        if is_made and "TABLE" in words:
            after = tokens[words.index("TABLE") + 1 :]
            names = (one.named.lower() for one in after if one.keyword not in IF_MISSING)
            yield next(filter(None, names), "")


def _scanned_in_join(plan: Steps) -> set[str]:
    """Return the tables that a plan with several loops scans, without CTEs and table-valued
    functions.
    """
    loops, signs = _loop_steps_by_table(plan), plan_signs(plan)
    stored = {name.lower() for name in (*signs.scans, *signs.index_scans)}
    tables = {name for name, step in loops.items() if "VIRTUAL TABLE" not in step}
    return tables & stored if len(loops) > 1 else set()


def _tables_without(read: frozenset[str], statement: str) -> set[str]:
    """Return all names in a statement (lower case), without the names and aliases of the tables
    whose columns the statement reads.
    """
    aliases, known = tables_by_alias(statement), {one.lower() for one in read}
    names = {one.named for one in tokens_of(statement) if one.named}
    return {name for name in names if name not in known and aliases.get(name) not in known}


def _selected_tables(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the tables whose columns a SELECT DISTINCT returns or sorts by, by their names in the
    statement. The result is empty for other statements, or if a column is written without its
    table.
    """
    words = [one.keyword for one in tokens]
    if words[:2] != ["SELECT", "DISTINCT"] or "FROM" not in words or "GROUP" in words:
        return frozenset()
    columns = [*tokens[2 : words.index("FROM")]]
    for one, after in pairwise(tokens[words.index("ORDER") :] if "ORDER" in words else ()):
        if one.named and after.text == ".":
            columns += [one, after]
    if not columns:
        return frozenset()
    found, before = set(), columns[0]
    for one, after in pairwise([*columns, tokens[words.index("FROM")]]):
        if one.named and after.text == ".":
            found.add(one.named)
        elif one.named and after.text != "(" and before.text != "." and not _is_alias(before, one):
            return frozenset()
        before = one
    return frozenset(found)


def _is_alias(before: Token, one: Token) -> bool:
    return "AS" in (before.keyword, one.keyword)


def _loop_steps_by_table(plan: Steps) -> dict[str, str]:
    """Return the outermost SCAN and SEARCH steps of a plan by table, in the order of the loops."""
    steps = [step.split(" ") for step in plan if step.startswith(("SCAN ", "SEARCH "))]
    return {words[1].lower(): " ".join(words) for words in steps}


def _tables_only_joined(plan: Steps, selected: frozenset[str]) -> list[str]:
    """Return the tables that a plan reads without selecting their columns. The result is empty if
    the plan does not search these tables by an index.
    """
    loops = _loop_steps_by_table(plan)
    names = [name for name in loops if name not in selected]
    later = [loops[name] for _, name in pairwise(loops) if name not in selected]
    can_search = all(step.startswith("SEARCH") and "AUTOMATIC" not in step for step in later)
    return names if can_search and selected <= loops.keys() else []
