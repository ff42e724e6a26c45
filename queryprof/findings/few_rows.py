"""Findings about the queries of a test. The tables of a test have few rows, so counts and plans
show a problem, but times do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from queryprof.analysis.call_sites import MODULE, CallSite
from queryprof.analysis.library_frames import LAZY, loads_lazily
from queryprof.analysis.plans import signs_of
from queryprof.analysis.units import counted, shortened
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import Group
from queryprof.findings.libraries import without_reader
from queryprof.findings.program import Program
from queryprof.findings.queries import one_query, parent_of, reads_what_it_writes
from queryprof.model import CallPath
from queryprof.operations import STATEMENT_OPERATIONS

MIN_LOOP, MIN_LAZY = 3, 2
"""The fewest executions of a query in a loop of the program, and of a lazy load of an ORM."""

SET_UP = frozenset(
    {"setUp", "asyncSetUp", "setUpTestData", "setUpClass", "tearDown", "setup_method"}
)
"""Functions in a test file that prepare its tests."""

RENDERING = ("/django/template/", "/jinja2/", "/rest_framework/")
"""Parts of file names of libraries that read attributes for a template or serializer."""

MOST = 2
"""A scan needs no index if it returns more than one of every MOST rows that it reads."""

IsTest = Callable[[str], bool]
Rule = Callable[["TestProgram", IsTest], Iterator[Finding]]


@dataclass(frozen=True)
class TestProgram(Program):
    """The part of a program that one test runs. A library's note on a statement may come from
    another test, so the stacks of this test's executions must confirm the note.
    """

    __test__ = False

    def note_of(self, group: Group) -> str | None:
        note = self.profile.notes.get(group.statement) or ""
        here = [one for one in self._stacks.get(group.statement, ()) if group.site.frame in one]
        lazy = [stack for stack in here if loads_lazily(stack, note)]
        if not lazy:
            return None
        is_read = any(name in frame.file for stack in lazy for frame in stack for name in RENDERING)
        return note if is_read else without_reader(note)


def n_plus_one(program: Program, is_test: IsTest) -> Iterator[Finding]:
    """Find queries that run in a loop of the program, or for objects of an ORM one by one.

    Args:
        is_test: returns whether a file belongs to the tests. The loops and setup code of tests are
            not judged.
    """
    for group in program.all_groups:
        frame = group.site.frame
        if not group.reads or frame is None or is_test(frame.file) or _is_for_many(program, group):
            continue
        runs = _executions_in_a_call(program, group, is_test)
        note = program.note_of(group) or ""
        loop = program.loop_of(group)
        if loop and loop.frame and is_test(loop.frame.file):
            loop = None
        is_lazy = note.startswith(LAZY)
        if runs < (MIN_LAZY if is_lazy else MIN_LOOP) or not (is_lazy or loop):
            continue
        parent = parent_of(program, group)
        evidence = [f"{counted(runs, 'execution')} from this line"]
        if is_lazy:
            evidence.append(note)
        if loop and loop.frame:
            evidence.append(f"the loop is in line {loop.frame.line} of {loop.frame.function}")
        if parent:
            evidence.append(f"for the rows of {shortened(parent.statement, 80)}")
        fix = one_query(program, group, parent)
        yield _finding(program, "n_plus_one", group, evidence, fix, loop)


def _is_for_many(program: Program, group: Group) -> bool:
    """Return whether the query reads many rows at once (by a list of keys, or by page), or takes
    the next entry of a queue.
    """
    pages = group.clauses.limits and (group.totals.rows_each or 0) > 1
    return (
        group.has_list or pages or program.is_preload(group) or reads_what_it_writes(program, group)
    )


def _executions_in_a_call(program: Program, group: Group, is_test: IsTest) -> int:
    """Return the most executions on one call path. Skips paths through a test's setup or its own
    loop.
    """
    runs: dict[CallPath, int] = {}
    for one in group.members:
        if one.operation in STATEMENT_OPERATIONS and not _is_prepared(program, one.path, is_test):
            runs[one.path] = runs.get(one.path, 0) + one.count
    return max(runs.values(), default=0)


def _is_prepared(program: Program, path: CallPath, is_test: IsTest) -> bool:
    """Return whether a test executes the query in its setup, or in a loop of its own."""
    for depth, frame in enumerate(path):
        if not is_test(frame.file):
            continue
        name = frame.function.rpartition(".")[2]
        called = path[depth - 1].function.rpartition(".")[2] if depth else ""
        is_loop = name.startswith("<") and name != MODULE
        if is_loop or program.loop_at(frame, called):
            return True
    return _is_in_setup(path, is_test)


def _is_in_setup(path: CallPath, is_test: IsTest) -> bool:
    return any(
        is_test(frame.file) and frame.function.rpartition(".")[2] in SET_UP for frame in path
    )


def full_scan(program: TestProgram, is_test: IsTest) -> Iterator[Finding]:
    """Find queries that scan a table for a few of its rows although an index would help."""
    for group in program.all_groups:
        scans = dict.fromkeys(table for plan in group.plans for table in signs_of(plan).scans)
        if not scans or group.site.frame is None or is_test(group.site.frame.file):
            continue
        totals = group.totals
        returns_most = MOST * (totals.rows_each or 0.0) > (totals.full_scan_steps or 0.0) + 1
        is_own = all(_is_in_setup(one.path, is_test) for one in group.members)
        served = program.served(group)
        if returns_most or is_own or served is None or served.is_other:
            continue
        if not (served.code and served.searches):
            continue
        evidence = [f"it reads all of {', '.join(scans)}"]
        fix = f"Create an index on the compared columns: {', '.join(served.terms)}."
        yield replace(_finding(program, "full_scan", group, evidence, fix), code=served.code)


def _finding(
    program: Program,
    category: str,
    group: Group,
    evidence: list[str],
    fix: str,
    loop: CallSite | None = None,
) -> Finding:
    """Return a finding without a gain, because nothing was timed."""
    return Finding(
        category,
        Severity.HIGH,
        0.0,
        0,
        group.statement,
        group.site,
        loop,
        tuple(evidence),
        fix,
        library=program.called_library(group.statement),
    )


RULES: dict[str, Rule] = {"n_plus_one": n_plus_one, "full_scan": full_scan}
"""The rules by category."""
