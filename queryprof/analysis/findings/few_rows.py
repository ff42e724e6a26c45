"""Findings of a test, whose tables have a few rows: what they are about shows in counts and plans,
and takes no time there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.findings.finding import Finding, Severity
from queryprof.analysis.findings.groups import Group
from queryprof.analysis.findings.libraries import LAZY
from queryprof.analysis.findings.program import Program
from queryprof.analysis.findings.queries import one_query, parent_of
from queryprof.analysis.plans import signs_of
from queryprof.analysis.units import counted, shortened

LEAST_LOOP, LEAST_LAZY = 3, 2
"""Executions of a query in a loop of the program, and for an attribute of an object mapper."""

Rule = Callable[[Program, Callable[[str], bool]], Iterator[Finding]]


def n_plus_one(program: Program, is_test: Callable[[str], bool]) -> Iterator[Finding]:
    """Queries that a loop of the program executes, or an object mapper for objects one by one.

    Args:
        is_test: whether a file is the test's: what that executes in its own loops is not judged.
    """
    for group in program.all_groups:
        runs = group.totals.executions
        if not group.reads or group.site.frame is None or is_test(group.site.frame.file):
            continue
        note = program.note_of(group) or ""
        loop = program.loop_of(group)
        if loop and loop.frame and is_test(loop.frame.file):
            loop = None
        is_lazy = note.startswith(LAZY)
        if runs < (LEAST_LAZY if is_lazy else LEAST_LOOP) or not (is_lazy or loop):
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


def full_scan(program: Program, is_test: Callable[[str], bool]) -> Iterator[Finding]:
    """Queries that read a table from end to end where an index would serve them."""
    for group in program.all_groups:
        scans = dict.fromkeys(table for plan in group.plans for table in signs_of(plan).scans)
        if not scans or group.site.frame is None or is_test(group.site.frame.file):
            continue
        served = program.served(group)
        if served is None or not (served.code and served.searches) or served.is_other:
            continue
        evidence = [f"it reads {', '.join(scans)} from end to end"]
        fix = f"Create an index on what it compares: {', '.join(served.terms)}."
        yield replace(_finding(program, "full_scan", group, evidence, fix), code=served.code)


def _finding(
    program: Program,
    category: str,
    group: Group,
    evidence: list[str],
    fix: str,
    loop: CallSite | None = None,
) -> Finding:
    """One without a gain: nothing was timed."""
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
"""By category."""
