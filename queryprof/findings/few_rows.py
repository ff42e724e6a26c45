"""Findings about the queries of a test. The tables of a test have few rows, so counts and plans
show a problem, but times do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from queryprof.analysis.call_sites import MODULE, CallSite
from queryprof.analysis.library_frames import LAZY, is_lazy_load
from queryprof.analysis.plans import plan_signs
from queryprof.analysis.units import counted, shorten
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.libraries import note_without_reader
from queryprof.findings.loop_shapes import is_queue_read
from queryprof.findings.n_plus_one import one_query_advice, parent_query
from queryprof.findings.program import Program
from queryprof.model import CallPath
from queryprof.operations import STATEMENT_OPERATIONS

MIN_LOOP, MIN_LAZY = 3, 2
"""The fewest executions of a query in a loop of the program, and of a lazy load of an ORM."""

SET_UP = frozenset(
    {"setUp", "asyncSetUp", "setUpTestData", "setUpClass", "tearDown", "setup_method"}
)
"""Functions in a test file that prepare its tests."""

RENDERING = ("/django/template/", "/jinja2/", "/rest_framework/")
"""Parts of the paths of libraries that read attributes for a template or serializer."""

MOST = 2
"""A scan needs no index if it returns more than one row per MOST rows read."""

IsTest = Callable[[str], bool]
Rule = Callable[["TestProgram", IsTest], Iterator[Finding]]


@dataclass(frozen=True)
class TestProgram(Program):
    """The part of a program that one test runs. A library's note on a statement ("lazy load of
    Order.lines") may come from another test, so the stacks of this test must confirm the note.
    """

    __test__ = False

    def library_note(self, group: StatementGroup) -> str | None:
        note = self.profile.notes.get(group.statement) or ""
        here = [one for one in self._stacks.get(group.statement, ()) if group.site.frame in one]
        lazy = [stack for stack in here if is_lazy_load(stack, note)]
        if not lazy:
            return None
        is_read = any(name in frame.file for stack in lazy for frame in stack for name in RENDERING)
        return note if is_read else note_without_reader(note)


def find_n_plus_one(program: Program, is_test: IsTest) -> Iterator[Finding]:
    """Find queries that run in a loop of the program, or that an ORM runs once per object.

    Args:
        is_test: returns whether a file belongs to the tests. Loops and setup code in tests are
            ignored.
    """
    for group in program.all_groups:
        frame = group.site.frame
        if (
            not group.reads
            or frame is None
            or is_test(frame.file)
            or _reads_many_at_once(program, group)
        ):
            continue
        runs = _most_executions_per_path(program, group, is_test)
        note = program.library_note(group) or ""
        loop = program.innermost_loop(group)
        if loop and loop.frame and is_test(loop.frame.file):
            loop = None
        is_lazy = note.startswith(LAZY)
        if runs < (MIN_LAZY if is_lazy else MIN_LOOP) or not (is_lazy or loop):
            continue
        parent = parent_query(program, group)
        evidence = [f"{counted(runs, 'execution')} from this line"]
        if is_lazy:
            evidence.append(note)
        if loop and loop.frame:
            evidence.append(f"the loop is in line {loop.frame.line} of {loop.frame.function}")
        if parent:
            evidence.append(f"once per row of {shorten(parent.statement, 80)}")
        fix = one_query_advice(program, group, parent)
        yield _finding_without_gain(program, "n_plus_one", group, evidence, fix, loop)


def _reads_many_at_once(program: Program, group: StatementGroup) -> bool:
    """Return whether the query reads many rows at once (by a list of keys, or by page), or reads
    the next entry of a queue.
    """
    pages = group.clauses.limits and (group.totals.rows_each or 0) > 1
    return (
        group.compares_with_list
        or pages
        or program.is_related_preload(group)
        or is_queue_read(program, group)
    )


def _most_executions_per_path(program: Program, group: StatementGroup, is_test: IsTest) -> int:
    """Return the number of executions on the busiest call path. Skips paths through a test's setup
    code or loop.
    """
    runs: dict[CallPath, int] = {}
    for one in group.members:
        if one.operation in STATEMENT_OPERATIONS and not _is_test_code(program, one.path, is_test):
            runs[one.path] = runs.get(one.path, 0) + one.count
    return max(runs.values(), default=0)


def _is_test_code(program: Program, path: CallPath, is_test: IsTest) -> bool:
    """Return whether a test executes the query in its setup, or in a loop of its own."""
    for depth, frame in enumerate(path):
        if not is_test(frame.file):
            continue
        name = frame.function.rpartition(".")[2]
        called = path[depth - 1].function.rpartition(".")[2] if depth else ""
        is_loop = name.startswith("<") and name != MODULE
        if is_loop or program.loop_at(frame, called):
            return True
    return _is_in_test_setup(path, is_test)


def _is_in_test_setup(path: CallPath, is_test: IsTest) -> bool:
    return any(
        is_test(frame.file) and frame.function.rpartition(".")[2] in SET_UP for frame in path
    )


def find_full_scans(program: TestProgram, is_test: IsTest) -> Iterator[Finding]:
    """Find queries that scan a table for a few of its rows although an index would help."""
    for group in program.all_groups:
        scans = dict.fromkeys(table for plan in group.plans for table in plan_signs(plan).scans)
        if not scans or group.site.frame is None or is_test(group.site.frame.file):
            continue
        totals = group.totals
        returns_most = MOST * (totals.rows_each or 0.0) > (totals.full_scan_steps or 0.0) + 1
        is_own = all(_is_in_test_setup(one.path, is_test) for one in group.members)
        index_help = program.index_help(group)
        if returns_most or is_own or index_help is None or index_help.is_other:
            continue
        if not (index_help.code and index_help.searches):
            continue
        evidence = [f"it reads all of {', '.join(scans)}"]
        fix = f"Create an index on the compared columns: {', '.join(index_help.terms)}."
        yield replace(
            _finding_without_gain(program, "full_scan", group, evidence, fix), code=index_help.code
        )


def _finding_without_gain(
    program: Program,
    category: str,
    group: StatementGroup,
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
        library=program.timed_library(group.statement),
    )


RULES: dict[str, Rule] = {"n_plus_one": find_n_plus_one, "full_scan": find_full_scans}
"""The rules by category."""
