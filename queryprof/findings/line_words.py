"""Sentences about the time of a program's line."""

from __future__ import annotations

from queryprof.analysis.units import counted, duration, each_if_several
from queryprof.findings.groups import StatementGroup
from queryprof.findings.libraries import ONE_QUERY
from queryprof.findings.program import Program


def line_time_in_words(program: Program, group: StatementGroup) -> str:
    """Return the time of the program's line per execution, as the end of a sentence."""
    runs = max(1, group.totals.statement_executions)
    said = ""
    if group.handed_ns:
        said = f"; passing each call to a thread and back takes {duration(group.handed_ns / runs)}"
    is_handed_on = group.total_line_ns < group.handed_ns  # the line only awaits
    if group.line_ns is not None and not is_handed_on:
        mean = duration(group.mean_line_ns)
        return f"{said}; the line takes {mean} each time{_timed_in_words(group)}"
    library = program.timed_library(group.statement)
    unknown = f"; the time of {library} was not measured, so the gain may be larger"
    return said + unknown * (library in ONE_QUERY and not is_handed_on)


def line_and_driver_in_words(group: StatementGroup) -> str:
    """Return the time of the program's line and the part of the driver, per execution."""
    runs = max(1, group.totals.statement_executions)
    driver = f"the driver takes {duration(group.steady_ns / runs)}"
    return (
        f"the line takes {duration(group.mean_line_ns)}{each_if_several(runs)}"
        f"{_timed_in_words(group)}, "
        f"{f'and {driver} in another thread' if group.handed_ns else f'of which {driver}'}"
    )


def _timed_in_words(group: StatementGroup) -> str:
    """Return how many executions were timed if most were not, such as " (27 of 1,896 executions
    timed)"; "" otherwise.
    """
    timed, runs = group.timed_executions, group.totals.statement_executions
    return f" ({timed:,} of {counted(runs, 'execution')} timed)" * (2 * timed < runs)
