"""Threads that execute a statement side by side: what each takes has in it what it waits for the others."""

from __future__ import annotations

from queryprof.analysis.findings.finding import Severity, severity_of
from queryprof.analysis.findings.groups import Group
from queryprof.analysis.findings.program import Program
from queryprof.analysis.units import duration

MOST_THREADS = 60
"""Threads that have a name of their own in a recording, and little less."""


def said_of_threads(group: Group) -> str:
    if group.threads < 2:
        return ""
    number = f"{group.threads} threads" if group.threads < MOST_THREADS else "Many threads"
    return (
        f"{number} run it: what they wait for each other (the interpreter's lock) is in these"
        f" times. If each took as long as half of them at the most, they were {duration(group.alone_ns)} in all."
    )


def most_beside_threads(program: Program, group: Group) -> Severity:
    """The severity at the most: where several threads run it, that of what none has to wait for."""
    if group.threads < 2:
        return Severity.HIGH
    part = min(1.0, group.alone_ns / max(group.steady_ns, 1))
    return severity_of(part * group.cost_ns / max(program.run_ns, 1), 0.0)
