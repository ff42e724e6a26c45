"""Findings about large numbers of executions, rows and objects."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from queryprof.analysis.call_sites import place_of
from queryprof.analysis.library_frames import LAZY
from queryprof.analysis.library_frames import MANY as MANY_OBJECTS
from queryprof.analysis.units import average, counted, duration, each_if_several, percent
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings.aggregates import returns_only_a_count
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.heavy_causes import python_calls_evidence
from queryprof.findings.large_values import LEAVE_OUT, reads_large_rows
from queryprof.findings.libraries import NO_OBJECTS, NO_RELATION
from queryprof.findings.line_words import line_and_driver_in_words
from queryprof.findings.program import Program
from queryprof.sql.clauses import first_table, selected_columns
from queryprof.sql.tokens import tokens_of

MANY = 1000
CHEAP_NS = 300_000
CHEAP_STEPS = 1_000
"""A cheap query has at most this many VM steps per execution. The call through sqlite3 itself takes
as long as 900 steps for a file (5.4 us at 6 ns per step) and 200 steps in memory. Above the limit,
the query itself takes most of the time, so fetching many items at once saves little. Measured with
sums over 0 to 100 rows of a covering index.
"""
MANY_SHARE = 0.10

OBJECTS = 50
"""With at least this many rows per execution, creating objects takes most of the line's time."""


def find_many_cheap_queries(program: Program) -> Iterator[Finding | None]:
    """Find cheap queries that run many times. Uses the driver's time, because the line's time
    includes the ORM's work.
    """
    for group in program.groups:
        totals = group.totals
        share = program.share_of(group, group.steady_ns)
        is_cheap = group.steady_ns < CHEAP_NS * totals.executions and (
            totals.vm_steps is None or totals.vm_steps <= CHEAP_STEPS
        )
        is_many = (
            group.reads and totals.executions >= MANY and not program.belongs_to_other_call(group)
        )
        if is_many and is_cheap and share >= MANY_SHARE:
            yield program.make_finding(
                "many_cheap",
                group,
                group.steady_ns * (1 - 1 / totals.executions),
                (
                    (
                        f"{counted(totals.executions, 'execution')} of"
                        f" {duration(group.steady_ns / totals.executions)} take"
                        f" {percent(min(1.0, share))} of the {program.whole}: each is fast, but"
                        " together they are slow"
                    ),
                ),
                "Fetch many items with one query (WHERE id IN (...), a JOIN), or keep in memory"
                " what you read repeatedly.",
                program.innermost_loop(group),
                doubt="queryprof cannot tell whether the program needs all rows.",
                most=Severity.MEDIUM,
            )


SEVERAL_JOINS = 2
MULTIPLIED = (
    "If the query joins several collections (joinedload()), it returns every combination of their"
    " rows. Load the collections with selectinload()."
)


def _outer_join_count(group: StatementGroup) -> int:
    words = [token.keyword for token in tokens_of(group.statement)]
    return sum(pair == ("OUTER", "JOIN") for pair in pairwise(words))


def find_slow_object_creation(program: Program) -> Iterator[Finding | None]:
    """Find queries for which the library needs longer to create objects than the database needs to
    find the rows.
    """
    for group in program.groups:
        library, rows = program.timed_library(group.statement), group.totals.rows_each or 0.0
        if not group.reads or library not in NO_OBJECTS or group.line_ns is None:
            continue
        made_ns = group.cost_ns - group.steady_ns - group.handed_ns
        if rows < OBJECTS or made_ns < group.steady_ns or program.belongs_to_other_call(group):
            continue
        if len(selected_columns(group.statement)) == 1:
            continue  # values, not objects
        runs = max(1, group.totals.statement_executions)
        each = each_if_several(runs)
        fix = NO_OBJECTS[library]
        if program.is_related_preload(group):
            fix = NO_RELATION.get(library, fix)
        if library == "sqlalchemy" and _outer_join_count(group) >= SEVERAL_JOINS:
            fix = f"{MULTIPLIED} {fix}"
        relation = _relation_only_appended_to(program, group)
        if relation:
            fix = ADD_ALONE.format(relation=relation)
        use = "" if relation else _row_reduction(program, group)
        is_plain = not use and not relation and fix == NO_OBJECTS[library]
        if is_plain:
            fix = _plain_fix(program, group, library)
        if use:
            fix = f"{ONLY[use]} {INSTEAD[use][library]}."
        yield program.make_finding(
            "many_objects",
            group,
            group.cost_ns,
            (
                (
                    f"{counted(runs, 'execution')} with {rows_of(rows)}{each};"
                    f" {line_and_driver_in_words(group)}"
                ),
            ),
            fix,
            program.innermost_loop(group),
            doubt=DOUBTS.get(use, NEEDED * (not relation and not use)),
            most=_highest_severity(use) if relation or use else Severity.LOW,
        )


VALUES = (
    "The line already reads values, not objects. Return fewer rows, or let the database compute"
    " counts, distinct values and sums."
)
LARGE = "The rows have large values, which the library may also convert, such as JSON."


def _plain_fix(program: Program, group: StatementGroup, library: str) -> str:
    """Return the fix for a query if it is unknown how the program uses the query's rows."""
    if group.site.frame and program.lines.reads_values(group.site.frame):
        return VALUES
    if library in LEAVE_OUT and _has_large_rows(program, group):
        return f"{LARGE} {LEAVE_OUT[library]}"
    return NO_OBJECTS[library]


def _has_large_rows(program: Program, group: StatementGroup) -> bool:
    """Return whether a query of the group's line reads rows with large values from the group's
    table. The group's own counters may hide this: with an OFFSET, they include many skipped rows.
    """
    return any(
        reads_large_rows(one) and first_table(one.statement) == first_table(group.statement)
        for one in (group, *program.groups_of_function(group.function))
        if place_of(one.site.frame) == place_of(group.site.frame)
    )


COMPUTED = "The added values may be properties that Python computes."
MATCHING = "It is unknown how many rows match, and whether the attribute is a column."
DOUBTS = {"sum": COMPUTED, "filter": MATCHING}
NEEDED = "The program may need all objects."


def find_rows_reduced_in_python(program: Program) -> Iterator[Finding | None]:
    """Find queries with many rows that the program only counts, adds up or sorts."""
    for group in program.groups:
        rows, use = group.totals.rows_each or 0.0, ""
        if (
            group.reads
            and rows >= MANY
            and program.timed_library(group.statement) not in NO_OBJECTS
        ):
            use = _row_reduction(program, group)
        if not use:
            continue
        runs = max(1, group.totals.statement_executions)
        each = each_if_several(runs)
        yield program.make_finding(
            "over_fetch",
            group,
            group.steady_ns * SAVED[use],
            (
                f"{counted(runs, 'execution')} returned {rows_of(rows)}{each}",
                *python_calls_evidence(program, group),
            ),
            f"{ONLY[use]} {INSTEAD[use]['']}.",
            program.innermost_loop(group),
            doubt=MATCHING * (use == "filter"),
            most=_highest_severity(use),
        )


def _highest_severity(use: str) -> Severity:
    return Severity.MEDIUM if use == "filter" else Severity.HIGH


def find_counts_for_existence(program: Program) -> Iterator[Finding | None]:
    """Find queries that count rows although the program only tests whether a row exists."""
    for group in program.groups:
        totals, frame = group.totals, group.site.frame
        steps = totals.vm_steps or 0.0
        if not group.reads or frame is None or steps < CHEAP_STEPS or totals.full_scan_steps:
            continue
        is_count = returns_only_a_count(group.statement)
        if not is_count or not program.lines.only_tests_existence(frame):
            continue
        library = program.library(group.statement)
        yield program.make_finding(
            "over_fetch",
            group,
            group.steady_ns * SAVED["exists"],
            (
                (
                    f"{counted(totals.executions, 'execution')} counted rows, which took"
                    f" {average(steps)} VM steps{each_if_several(totals.executions)}"
                ),
            ),
            f"{ONLY['exists']} {INSTEAD['exists'].get(library, INSTEAD['exists'][''])}.",
            program.innermost_loop(group),
            doubt=IN_VAIN,
            most=Severity.MEDIUM,
        )


IN_VAIN = "If no row matches, the query reads as much as before."


LAZY_METHODS = frozenset({"__len__", "__iter__", "__bool__"})
"""Methods of lazy queries that Python calls for `len()`, loops and tests."""


def _row_reduction(program: Program, group: StatementGroup) -> str:
    """Return how the program reduces a query's rows (see SourceLines.row_reduction)."""
    note, frame = program.library_note(group) or "", group.site.frame
    if frame is None or _is_read_by_other_library(program, group):
        return ""
    relation = note.removeprefix(LAZY).removeprefix(MANY_OBJECTS).partition(" in ")[0]
    attribute = relation.rpartition(".")[2] if note.startswith(LAZY) else ""
    is_lazy = program.called_library_function(group) in LAZY_METHODS
    return program.lines.row_reduction(frame, attribute, is_lazy)


def _is_read_by_other_library(program: Program, group: StatementGroup) -> bool:
    """Return whether a library other than the ORM, such as a template engine or a serializer,
    fetches the rows when the program's line runs.
    """
    package = program.timed_library(group.statement)
    folder = {"django": "django/db"}.get(package, package)
    frames = program.library_frames(group)
    own = (f"/{folder}/", f"/{folder}.py")  # peewee may be one file
    return bool(package and frames) and not any(one in frames[0].file for one in own)


ONLY = {
    "count": "The program only counts the rows: let the database count them with",
    "sum": "The program only adds up the rows, or takes the largest: let the database do it with",
    "exists": "The program only checks whether there are rows: use",
    "first": "The program sorts all rows and keeps the first: let the database do it with",
    "filter": "The program uses only rows that match a condition: let the database find them with",
}
INSTEAD = {
    "count": {
        "": "count(*)",
        "django": '`.count()`, or for all parents at once `.annotate(n=Count("relation"))`',
        "sqlalchemy": "`func.count()`, with `.group_by()` to count for all parents at once",
        "peewee": "`.count()`, and `fn.COUNT()` with `.group_by()` for all parents at once",
        "pony": "`count()` in one `select()`",
        "tortoise": '`.count()`, or for all parents at once `.annotate(n=Count("relation"))`',
    },
    "sum": {
        "": "sum() or max(), and GROUP BY for several sums",
        "django": '`.aggregate(Sum("column"))`',
        "sqlalchemy": "`func.sum(Model.column)`, and GROUP BY for several sums",
        "peewee": "`fn.SUM(Model.column)`, and `.group_by()` for several sums",
        "pony": "`sum()` in one `select()`",
        "tortoise": '`.annotate(total=Sum("column"))`',
    },
    "exists": {
        "": "EXISTS, or LIMIT 1",
        "django": "`.exists()`",
        "sqlalchemy": "`select(exists(query))`",
        "peewee": "`.exists()`",
        "pony": "`exists()`",
        "tortoise": "`.exists()`",
    },
    "first": {
        "": "ORDER BY and LIMIT",
        "django": '`.order_by("column")[:10]`',
        "sqlalchemy": "`.order_by(Model.column).limit(10)`",
        "peewee": "`.order_by(Model.column).limit(10)`",
        "pony": "`.order_by()[:10]`",
        "tortoise": '`.order_by("column").limit(10)`',
    },
    "filter": {
        "": "WHERE",
        "django": "`.filter(field=value)`",
        "sqlalchemy": "`.where(Model.column == value)`",
        "peewee": "`.where(Model.column == value)`",
        "pony": "`select(e for e in Entity if e.attribute == value)`",
        "tortoise": "`.filter(field=value)`",
    },
}
"""The replacement for each use of the rows, by library. The key "" is for plain SQL."""

SAVED = {"count": 0.96, "sum": 0.6, "exists": 0.96, "first": 0.5, "filter": 0.9}
"""The share of the driver's time that is saved if the database reduces the rows. Measured with
SQLite 3.40 on tables of 10,000 to 300,000 rows and two or five columns. count(*) saved 0.96 to 1.0,
one sum 0.84 to 0.95, sums by group 0.47 to 0.79, and LIMIT 10 0.01 to 0.77. A condition that
matches at most a tenth of the rows saved 0.88 to 0.98.
"""


ADD_ALONE = (
    "The line only appends to {relation}, which loads all of its objects first. Add the new object"
    " by its foreign key: `session.add(Model(parent_id=parent.id, ...))`. Or use"
    ' `lazy="write_only"` in the relationship.'
)


def _relation_only_appended_to(program: Program, group: StatementGroup) -> str:
    """Return the relation that a line loads only to append an object to it, or ""."""
    note, frame = program.library_note(group) or "", group.site.frame
    relation = note.removeprefix(LAZY).removeprefix(MANY_OBJECTS).partition(" in ")[0]
    if frame is None or not note.startswith(LAZY):
        return ""
    is_added = relation.rpartition(".")[2] in program.lines.attributes_appended_to(frame)
    return relation if is_added else ""
