"""Findings about triggers that take most of a write's time."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.units import counted, duration, shorten
from queryprof.findings.finding import Finding
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program

FEW = 20
"""The fewest changed rows, or executions, to report."""

SHOWN, MAX_CHARACTERS = 3, 60
"""The number of trigger names to show, and the characters of each."""

LONG_NS, MANY_STEPS = 50_000, 1_000
"""A write is reported if it takes this much time, or this many VM steps, per row. An UPDATE by key
took 7 us and 17 steps without a trigger. With a trigger that writes 300 rows, it took 88 us (on a
slower machine 250 us) and 4,245 steps (trigger_work.py of the tests' programs). Triggers that write
to full-text indexes take time but few steps: two of them took 120 us and 74 steps.
"""

RUN_STEPS = 50
"""An UPDATE with fewer VM steps per row did not run the body of a trigger with a WHEN condition.
Measured: an UPDATE by key took 20 steps if the condition was false. It took 74 steps if the trigger
wrote to a full-text index.
"""


def fired_triggers_in_words(program: Program, group: StatementGroup) -> Iterator[str]:
    """Yield the names of the triggers that a statement fires, if there are any."""
    fired = program.planner.triggers(group.statement)
    if fired:
        names = ", ".join(shorten(one.name, MAX_CHARACTERS) for one in fired[:SHOWN])
        more = f" and {len(fired) - SHOWN} more" if len(fired) > SHOWN else ""
        kind = "trigger" if len(fired) == 1 else "triggers"
        verb = "may fire" if any(one.has_condition for one in fired) else "fires"
        yield f"the statement {verb} the {kind} {names}{more}"


def find_slow_triggers(program: Program) -> Iterator[Finding | None]:
    """Find slow writes that fire triggers. Time for files is not counted."""
    for group in program.groups:
        rows = max(group.rows, group.totals.executions)
        worked_ns = group.steady_ns - group.files.sync_ns - group.files.write_ns
        if not group.writes or rows < FEW:
            continue
        steps = (group.totals.vm_steps or 0.0) * group.totals.executions / rows
        if worked_ns < LONG_NS * rows and steps < MANY_STEPS:
            continue
        fired = program.planner.triggers(group.statement)
        if not fired or (steps < RUN_STEPS and all(one.has_condition for one in fired)):
            continue
        each = duration(worked_ns / rows)
        is_of_all = group.verb == "UPDATE" and not any(one.columns for one in fired)
        yield program.make_finding(
            "trigger_work",
            group,
            worked_ns,
            (
                f"{counted(rows, 'row')} took {each} each, not counting file I/O",
                *fired_triggers_in_words(program, group),
            ),
            (
                "Let the trigger run only for the columns that it needs: AFTER UPDATE OF column"
                " ON table. Now the trigger runs for every change."
                if is_of_all
                else "Do less in the trigger, or do its work for many rows at once elsewhere."
            ),
            program.innermost_loop(group),
            doubt="The trigger's part of the time is not measured.",
        )
