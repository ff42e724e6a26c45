"""Findings about queries in loops, which run once per row of another query, or once per item."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.library_frames import DRIVERS, LAZY, MANY, PASS_THROUGH_LIBRARIES
from queryprof.analysis.spans import RepeatSummary
from queryprof.analysis.units import average, counted, duration, shorten
from queryprof.findings import shares
from queryprof.findings.aggregates import aggregates_at_once
from queryprof.findings.finding import UNKNOWN_ITEMS, Finding, Severity, first_text_if_true
from queryprof.findings.groups import StatementGroup
from queryprof.findings.indexes import uses_excess_vm_steps
from queryprof.findings.libraries import (
    FIRST_PER_PARENT_FIXES,
    IN_TEMPLATE,
    MANY_AT_ONCE,
    NO_AUTOFLUSH,
    ONE_QUERY,
    owner_in_lazy_note,
    preload_advice,
    with_compared_column,
)
from queryprof.findings.library_calls import (
    FILTERED,
    batched_call_advice,
    cascade_advice,
    statement_advice,
)
from queryprof.findings.library_work import unusual_library_work
from queryprof.findings.line_words import line_time_in_words
from queryprof.findings.loop_shapes import (
    calls_query_and_parent,
    executes_in_created_tasks,
    is_queue_read,
    is_recursion,
    loads_by_position,
    needs_previous_row,
)
from queryprof.findings.program import Program
from queryprof.findings.side_by_side import parallel_threads_doubt, share_without_waits
from queryprof.findings.span_repeats import (
    FEW,
    ROWS,
    repeats_by_statement_site,
    repeats_outside_or_in_each_span,
)
from queryprof.findings.units_of_work import IN_A_REQUEST, is_in_request
from queryprof.findings.whole import PROGRAM_BUSY_TIME
from queryprof.sql.clauses import comparisons_of, first_table

SPREAD = 0.1
"""The largest relative difference between a query's executions and the rows of its parent query."""

LOADED = 2
"""The fewest executions of a query for each execution of its parent query, if an ORM's note names
the class of the parent's rows. Otherwise the limit is ROWS.
"""

POINT_ROWS = 1000
"""A query for one item returns at most this many rows."""

SLOW_NS = 5_000_000
"""If SQLite's counters are unknown, a query counts as expensive in itself if its median execution
takes longer than this. The median is the same on a busy machine, where some executions wait for a
processor.
"""

MANY_ROWS = 20
"""With more rows per item, one query with IN is slower than a query per item: it takes 0.89 of the
time with 10 rows, 0.98 with 20, 1.08 with 40 (sqlite3_fan_out). So if only the source shows the
loop, a query with more rows needs no fix.
"""

SIDE_BY_SIDE = "The loop creates tasks, which run concurrently, as requests do."

PREVIOUS_ROW_FIX = (
    "If SQL can compute the next value, read all rows with one query (WITH RECURSIVE). Otherwise,"
    " the program needs these queries."
)
ARRIVING_ITEMS_DOUBT = (
    "The program mostly waits. Items that arrive one by one, such as messages, cannot be fetched at"
    " once."
)
PREVIOUS_ROW_DOUBT = "Each query needs a value from the row before."

FIRST_OF_EACH = (
    "Fetch the first rows of all items with one query: row_number() OVER (PARTITION BY key ORDER"
    " BY ...) in a subquery, and a WHERE on that number."
)
BY_ROWID = "(rowid=?)"
"""The part of a plan that finds a row by its primary key."""

RECURSIVE = (
    "Read the whole tree with one query (WITH RECURSIVE). Or run one query for each level: WHERE"
    " ... IN (keys of the level above)."
)


RANGES = frozenset({"<", "<=", ">", ">=", "BETWEEN"})
OF_RANGES = (
    "Fetch the rows of all items with one query (the conditions combined with OR), and assign the"
    " rows to the items in Python. The query compares ranges, so no relation can load its rows."
)


def find_n_plus_one(program: Program) -> Iterator[Finding | None]:
    """Find queries that run for the rows of another query, or repeatedly in one span."""
    yield from _find_repeated_queries(program, surely=True)


def find_queries_in_loops(program: Program) -> Iterator[Finding | None]:
    """Find queries in loops that only the source shows."""
    yield from _find_repeated_queries(program, surely=False)


def _find_repeated_queries(program: Program, surely: bool) -> Iterator[Finding | None]:
    repeated = repeats_by_statement_site(program)
    for group in program.groups:
        if not _may_be_combined(program, group):
            continue
        in_spans = repeated.get((group.statement, group.site.frame))
        loop = program.innermost_loop(group)
        parent = parent_query(program, group)
        if loop and parent and calls_query_and_parent(loop, group, parent):
            loop = None  # the real loop is in a template or library
        repeats = repeats_outside_or_in_each_span(program, group)
        is_child = parent and group.totals.executions >= FEW
        is_sure = bool(in_spans or is_child or (repeats and _loads_lazily(program, group)))
        chooses = bool(loop) and (group.clauses.chooses or loads_by_position(program, group))
        if is_sure != surely or not (is_sure or (repeats and chooses)):
            continue
        if is_sure or not _needs_each_query(program, group):
            if IN_TEMPLATE in (program.library_note(group) or ""):
                loop = None  # the loop is in the template
            yield _loop_finding(program, group, loop, parent, in_spans)


def _loads_lazily(program: Program, group: StatementGroup) -> bool:
    """Return whether an object mapper executes the query to load one object, or one attribute of an
    object, and does so for each of several objects.
    """
    note, calls = program.library_note(group) or "", program.called_library_functions(group)
    is_lazy = note.startswith(LAZY) or "_load_expired" in calls
    return is_lazy and not _needs_each_query(program, group)


def _may_be_combined(program: Program, group: StatementGroup) -> bool:
    """Return whether one query could replace many executions of the group's query."""
    is_for_few = (group.totals.rows_each or 0) <= POINT_ROWS
    if not group.reads or not is_for_few or program.belongs_to_other_call(group):
        return False
    return not _compares_patterns_alone(group)


def _needs_each_query(program: Program, group: StatementGroup) -> bool:
    """Return whether the program needs each execution. This is so if the query already handles many
    items, or if each execution does much work or depends on the previous execution.
    """
    if loads_by_position(program, group):
        return False
    rows, steps = group.totals.rows_each or 0.0, group.totals.vm_steps
    is_slow = uses_excess_vm_steps(steps, rows) if steps else (group.totals.p50_ns or 0) > SLOW_NS
    is_work = (
        is_slow and group.steady_ns > group.cost_ns / 2 and not _scans_for_each(program, group)
    )
    takes_first = group.clauses.limits and rows > 1  # a JOIN cannot do this for each item
    is_matched = any("VIRTUAL TABLE" in step for plan in group.plans for step in plan)
    is_for_many = rows > MANY_ROWS or (group.compares_with_list and rows > 1)
    if is_for_many or is_work or takes_first or is_matched:
        return True
    known_fix = batched_call_advice(
        program.library(group.statement), program.called_library_functions(group)
    )
    return not known_fix and is_queue_read(program, group)


def _scans_for_each(program: Program, group: StatementGroup) -> bool:
    """Return whether each execution computes an aggregate from a whole table, as DuckDB does. One
    query with GROUP BY reads the table once for all items.
    """
    is_duckdb = program.report.profile.systems.get(group.statement) == "duckdb"
    return is_duckdb and group.clauses.adds_up and not group.clauses.groups


def _loop_finding(
    program: Program,
    group: StatementGroup,
    loop: CallSite | None,
    parent: StatementGroup | None,
    in_spans: RepeatSummary | None,
) -> Finding | None:
    """Return the finding about a query in a loop, or in a loop of each span."""
    runs = group.totals.executions
    calls_itself = is_recursion(loop, group)
    follows = not in_spans and not parent and needs_previous_row(program, loop, group)
    in_tasks = not in_spans and executes_in_created_tasks(program, loop, group)
    arrives = program.whole == PROGRAM_BUSY_TIME and not in_spans and not parent
    in_request = not in_spans and not parent and is_in_request(program, group)
    walks = calls_itself and abs(group.rows - runs) <= SPREAD * runs  # once per returned row
    finding = program.make_finding(
        "n_plus_one",
        group,
        share_without_waits(group)
        * (group.cost_ns - (1 - shares.JOINED) * group.further_rows_ns)
        * (1 - 1 / max(runs, 1)),
        tuple(_loop_evidence(program, group, loop, parent, in_spans)),
        first_text_if_true(
            (follows, PREVIOUS_ROW_FIX),
            (calls_itself and not parent, RECURSIVE),
            (True, one_query_advice(program, group, parent)),
        )
        + NO_AUTOFLUSH * program.follows_unneeded_flush(group),
        loop,
        doubt=parallel_threads_doubt(group)
        or first_text_if_true(
            (in_tasks, SIDE_BY_SIDE),
            (follows, PREVIOUS_ROW_DOUBT),
            (arrives, ARRIVING_ITEMS_DOUBT),
            (in_request, IN_A_REQUEST),
            (
                not (in_spans or parent or walks or _loads_lazily(program, group)),
                UNKNOWN_ITEMS,
            ),
        ),
        most=Severity.LOW if in_tasks or follows or arrives or in_request else Severity.HIGH,
    )
    return replace(finding, parent=parent.statement) if finding and parent else finding


def _loop_evidence(
    program: Program,
    group: StatementGroup,
    loop: CallSite | None,
    parent: StatementGroup | None,
    in_spans: RepeatSummary | None,
) -> Iterator[str]:
    """Yield the evidence that a query runs in a loop."""
    runs = group.totals.executions
    each_ns = group.steady_ns / max(runs, 1)
    line = line_time_in_words(program, group)
    yield f"{counted(runs, 'execution')} of {duration(each_ns)} each{line}"
    yield from unusual_library_work(program, group)
    if in_spans:
        several = f" per span on average, in {in_spans.spans:,} spans called"
        where = " in a span called" if in_spans.spans == 1 else several
        yield f"{average(in_spans.each)} times{where} {in_spans.span}"
    if parent:
        yield (
            f"{'once' if parent.rows == runs else 'about once'} per row of"
            f" {shorten(parent.statement, 80)} ({average(parent.totals.rows)} rows"
            f" in {counted(parent.totals.executions, 'execution')})"
        )
    if not program.library_note(group) and (others := program.other_reads_of_line(group)):
        yield f"the line runs another query equally often: {shorten(others[0].statement, 80)}"
    if loop and loop.frame and not (parent and program.innermost_loop(parent) == loop):
        place = f"in line {loop.frame.line} of {loop.frame.function}"
        calls_itself = is_recursion(loop, group)
        yield f"recursion {place}" if calls_itself else f"the loop is {place}"


def _compares_patterns_alone(group: StatementGroup) -> bool:
    """Return whether a query compares only with patterns. IN or JOIN cannot replace such a query:
    SQLite would still search the table for each pattern.
    """
    operators = {one.operator for one in comparisons_of(group.statement) if one.clause != "SET"}
    return bool(operators) and operators <= {"LIKE", "GLOB"}


def parent_query(program: Program, group: StatementGroup) -> StatementGroup | None:
    """Return the parent query, for whose rows the group's statement runs; None if not found. The
    parent query is in the same function or a calling function.
    """
    runs = group.totals.executions
    note = program.library_note(group) or ""
    owner = owner_in_lazy_note(note) if note.startswith(LAZY) else ""
    found = [
        one
        for one in _possible_parent_queries(program, group)
        if one.totals.executions * (LOADED if program.reads_class(one, owner) else ROWS) <= runs
    ]
    return min(found, key=lambda other: abs(other.rows - runs), default=None)


def _possible_parent_queries(program: Program, group: StatementGroup) -> Iterator[StatementGroup]:
    """Yield the queries in functions around a group that return about as many rows as the group has
    executions.
    """
    runs = group.totals.executions
    lines = {(frame.file, frame.function): frame.line for frame in reversed(group.path)}
    for function, line in reversed(lines.items()):
        for other in program.queries_with_rows(function, (1 - SPREAD) * runs, (1 + SPREAD) * runs):
            is_behind = other.site.frame is not None and other.site.frame.line > line
            if other is not group and not (is_behind and program.innermost_loop(other) is None):
                yield other


def _lazy_load_advice(
    program: Program, group: StatementGroup, parent: StatementGroup | None, note: str
) -> str:
    """Return how to load the data of a lazy load together with the parent query."""
    owner = owner_in_lazy_note(note)
    outer = _lazy_load_note(program, group, owner)
    near = [
        one
        for frame in group.path
        for one in program.groups_of_function((frame.file, frame.function))
    ]
    is_of_other = parent is not None and not program.reads_class(parent, owner)
    is_preloaded = any(
        program.is_related_preload(one) and program.reads_class(one, owner)
        for one in ([parent] if parent else near)
    )
    is_of_owner = not (is_of_other or is_preloaded)
    library = program.library(group.statement) or program.object_mapper
    others = " and ".join(program.other_loaded_attributes(group))
    also = f" Its line also loads {others}: load these in the same way." if others else ""
    return preload_advice(library, note, outer, is_of_owner) + also


def _lazy_load_note(program: Program, group: StatementGroup, owner: str) -> str:
    """Return the note of the outer lazy load, or "". The outer lazy load also runs in a loop, and
    loads the objects for which the group's query runs.
    """
    for one in _possible_parent_queries(program, group):
        note = program.library_note(one) or ""
        is_outer = note.startswith(LAZY + MANY) or (
            note.startswith(LAZY) and program.reads_class(one, owner)
        )
        if is_outer and repeats_outside_or_in_each_span(program, one):
            return note
    return ""


def one_query_advice(program: Program, group: StatementGroup, parent: StatementGroup | None) -> str:
    """Return how one query can replace the repeated executions of the group's statement."""
    library = program.library(group.statement)
    calls = program.called_library_functions(group)
    if note := program.library_note(group):
        return cascade_advice(library, calls) or _lazy_load_advice(program, group, parent, note)
    # The query reads preloaded rows again, because it filters, counts or orders them.
    is_preloaded = first_table(group.statement) in program.preloaded_tables
    filtered = FILTERED.get(library, "") * (is_preloaded and not program.is_related_preload(group))
    known = filtered or statement_advice(library, group.statement)
    if fix := known or batched_call_advice(library, calls):
        return fix
    if group.clauses.adds_up and not group.clauses.groups and (group.totals.rows_each or 0) <= 1:
        return aggregates_at_once(group.statement, library)
    if _takes_first_rows(group):
        return FIRST_PER_PARENT_FIXES.get(library, FIRST_OF_EACH)
    if library in ONE_QUERY and (parent or group.executions_outside_spans < FEW):
        return OF_RANGES if _compares_ranges(group) else ONE_QUERY[library]
    text = _one_query_text(library, parent, group.totals.rows_each or 0.0)
    return with_compared_column(text, group.statement)


def _one_query_text(library: str, parent: StatementGroup | None, rows_each: float) -> str:
    if library in MANY_AT_ONCE:
        return f"Load all rows before the loop {MANY_AT_ONCE[library]}"
    if library and library not in (*DRIVERS, *PASS_THROUGH_LIBRARIES):
        return (
            f"{library} executes the query. Check its documentation for a call that fetches many"
            " rows, or keep results that do not change."
        )
    if parent and rows_each > MANY_ROWS:
        return (
            "Join the two queries. With this many rows per item, one WHERE ... IN (...) may be"
            " slower than the loop."
        )
    if parent:
        return "Join the two queries, or fetch all rows with one WHERE ... IN (...)."
    return "Fetch all rows before the loop with one WHERE ... IN (...), or with a JOIN."


def _compares_ranges(group: StatementGroup) -> bool:
    """Return whether a query compares ranges. No relation of an object mapper does."""
    return any(one.operator in RANGES for one in comparisons_of(group.statement))


def _takes_first_rows(group: StatementGroup) -> bool:
    """Return whether the query takes the first rows of each item, which a JOIN cannot do."""
    if (group.totals.rows_each or 0) > 1:
        return group.clauses.limits
    is_unique = any(BY_ROWID in step for plan in group.plans for step in plan)
    return group.clauses.limits and group.clauses.orders and not is_unique
