"""Findings about reads that each run in their own transaction."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.units import counted, duration
from queryprof.findings import shares
from queryprof.findings.finding import Finding
from queryprof.findings.libraries import ONE_QUERY, is_unknown_library
from queryprof.findings.program import Program
from queryprof.findings.transactions import FEW, MIN_COMMITS_PER_WRITE

READ_LOCK_BYTES = 200
"""The bytes that SQLite reads to check whether the file changed, plus a small margin."""

LOCK_READ_STEPS = 250
"""If a read takes fewer VM steps than this, locking is a large part of its time. Locking takes as
long as 500 steps. The share of locking was 0.79, 0.70, 0.57 and 0.44 for reads of 1, 20, 50 and 100
rows, at five steps per row.
"""


def find_autocommit_reads(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        runs, files = group.totals.executions, group.files
        locks = (
            files.calls >= MIN_COMMITS_PER_WRITE * runs
            and files.read_bytes <= READ_LOCK_BYTES * files.calls
        )
        quick = (group.totals.vm_steps or LOCK_READ_STEPS) < LOCK_READ_STEPS
        is_mapped = program.library(group.statement) in ONE_QUERY and program.innermost_loop(group)
        if is_mapped or program.path_inside_request(group) != group.path:
            continue  # the ORM costs more than the lock, or each read belongs to another request
        if group.reads and runs >= 10 * FEW and locks and quick and not files.syncs:
            yield program.make_finding(
                "autocommit_reads",
                group,
                group.work_ns * shares.LOCKED,
                (
                    (
                        f"{counted(runs, 'read')} of {duration(group.totals.mean_ns)}, each in"
                        " its own transaction: SQLite locks the file, checks whether it changed,"
                        " and unlocks it"
                    ),
                ),
                (
                    f"{library} starts a transaction for each read. Keep the results if the data"
                    " does not change, or use a write-ahead log (PRAGMA journal_mode = WAL)."
                    if is_unknown_library(library := program.library(group.statement))
                    else (
                        "Put the reads in one transaction (BEGIN before the loop, COMMIT after it),"
                        " so that SQLite locks the file once. Or use a write-ahead log (PRAGMA"
                        " journal_mode = WAL)."
                    )
                ),
                program.innermost_loop(group),
                doubt="The gain is an estimate.",
            )
