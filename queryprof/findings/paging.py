"""Findings about unused rows of a query: the rows before a page, and the rows after the first."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.marks import ROW_STEPS
from queryprof.analysis.plans import plan_signs
from queryprof.analysis.units import average, counted
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings import shares
from queryprof.findings.finding import Finding, Severity, first_text_if_true
from queryprof.findings.program import Program
from queryprof.findings.selectivity import is_aggregate
from queryprof.findings.units_of_work import is_in_request, is_of_a_reader
from queryprof.findings.work import (
    ONCE,
    could_stop_early,
    index_sorts_less,
    reads_skipped_rows,
)

PASSED_STEPS = 100
"""The most VM steps for a row that OFFSET skips. With more steps, the query also reads other rows.
"""

MIN_OFFSET_ROWS, MIN_OFFSET_RATIO = 1000, 10
"""If VM steps are unknown, an OFFSET is large if it skips at least 1,000 rows and at least 10 times
as many rows as the query returns.
"""

MIN_OFFSET_STEPS = 2000
"""An OFFSET is large if an execution takes at least this many VM steps."""

PAGES_OF_REQUESTS = "If each page is a request of its own, most requests read the first pages."


def find_offset_pagination(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        totals = group.totals
        steps, rows = totals.vm_steps, totals.rows_each or 0.0
        offset = group.given.mean_offset(totals.executions)
        skips = group.skips_many_rows and totals.executions > ONCE
        if skips and could_stop_early(group) and index_sorts_less(program, group):
            continue  # each page sorts all rows: find_temp_btree_sorts reports it
        passed = rows + (offset or 0.0)
        if skips and offset is not None and (steps or 0.0) > PASSED_STEPS * passed:
            continue  # the query reads many more rows than it skips
        if skips and reads_skipped_rows(group, program.index_help(group)):
            continue  # even without an OFFSET: find_full_scans reports it
        is_far = (
            offset is not None
            and steps is None
            and offset >= max(MIN_OFFSET_ROWS, MIN_OFFSET_RATIO * rows)
        )
        each = ROW_STEPS if offset is not None else PASSED_STEPS  # joins take more steps per row
        takes_long = (steps or 0.0) >= max(MIN_OFFSET_STEPS, each * (rows + 1))
        if skips and (is_far or takes_long):
            # If steps are unknown: each page takes at least as long as the fastest page.
            first_ns = totals.executions * totals.min_call_ns
            needed_ns = (
                first_ns if is_far else group.steady_ns * shares.needed_vm_steps_share(totals)
            )
            in_request = is_in_request(program, group) or is_of_a_reader(program, group)
            is_doubtful = offset is None or in_request
            work = "" if steps is None else f" and take {average(steps)} VM steps"
            yield program.make_finding(
                "offset_pagination",
                group,
                max(0.0, group.steady_ns - needed_ns),
                (
                    (
                        f"{counted(totals.executions, 'execution')} return {rows_of(rows)}"
                        f" each{work}: each query also reads the rows of all earlier pages"
                    ),
                    *_offset_note(offset),
                ),
                "Remember the last row of a page and continue after it: WHERE key > ? ORDER BY"
                " key LIMIT ? (keyset pagination), with an index on the key.",
                program.innermost_loop(group),
                doubt=first_text_if_true(
                    (offset is None, "The values of OFFSET are unknown."),
                    (in_request, PAGES_OF_REQUESTS),
                ),
                most=Severity.LOW if is_doubtful else Severity.HIGH,
            )


def _offset_note(offset: float | None) -> Iterator[str]:
    if offset is not None:
        yield f"OFFSET was {average(offset)} on average in the sampled executions"


def find_over_fetching(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        calls, totals = group.calls_by_operation, group.totals
        ones = calls.get("fetchone", 0) + calls.get("next", 0)
        stops = 0 < ones <= 2 * totals.executions and not (calls.keys() & {"fetchall", "fetchmany"})
        steps = totals.vm_steps or 0.0
        works = steps >= MIN_OFFSET_STEPS and (totals.rows_each or 0) <= 2
        sorts = any(plan_signs(plan).temporary for plan in group.plans)
        chooses = group.clauses.chooses
        limited = group.clauses.limits
        if group.reads and stops and works and not limited and (sorts or not chooses):
            if totals.executions <= ONCE or is_aggregate(group, program.index_help(group)):
                continue
            yield program.make_finding(
                "over_fetch",
                group,
                group.steady_ns * (1 - shares.needed_vm_steps_share(totals)),
                (
                    (
                        f"{counted(totals.executions, 'execution')} take {average(steps)} VM steps"
                        " each; the program fetches one row and stops"
                    ),
                ),
                "Add LIMIT 1 to the query, with an index on its ORDER BY (or use min() or"
                " max()). SQLite then makes one row.",
                program.innermost_loop(group),
            )
