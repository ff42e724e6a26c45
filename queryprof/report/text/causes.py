"""Show each cause of test failures once, with all tests that fail because of it."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from queryprof.comparing.baseline_deviations import Deviation
from queryprof.comparing.baseline_figures import SiteFigures, StatementFigures
from queryprof.report.places import file_and_line
from queryprof.report.text.plans import plans_before_and_after, worse_plan_reason

MAX_STATEMENT_CHARACTERS = 300
MAX_CAUSES = 20


@dataclass(frozen=True, slots=True)
class WorseStatement:
    """A statement that got worse, described independently of the test.

    Attributes:
        changes: the figures that got worse.
        explanations: possible reasons, one per line.
        place: the line that runs the statement, with its source.
    """

    statement: str
    changes: tuple[str, ...]
    explanations: tuple[str, ...]
    place: tuple[str, ...] = ()


def cause_of_deviation(deviation: Deviation, is_shuffled: bool = False) -> WorseStatement:
    """Return the cause of a deviation.

    Args:
        is_shuffled: whether the test order changes from run to run.
    """
    after = deviation.after
    why = [_usual_reason(deviation.before, after, is_shuffled)] if after else []
    if deviation.before and after:
        why += plans_before_and_after(deviation.before.plans, after.plans)
    elif after:
        why += [f"its plan  {'; '.join(step.strip() for step in p)}" for p in after.plans]
    if deviation.instead_of:
        why.append(f"no longer executed: {cut_statement(deviation.instead_of)}")
    place = site_lines(after.sites[0], with_executions=False) if after and after.sites else ()
    return WorseStatement(
        cut_statement(deviation.statement),
        deviation.reasons,
        tuple(filter(None, why)),
        tuple(place),
    )


def cause_lines(found: Iterable[tuple[str, WorseStatement]]) -> list[str]:
    """Return the causes with their tests, most tests first.

    Args:
        found: (test, cause) pairs.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[tuple[str, WorseStatement]]] = {}
    for test, cause in found:
        groups.setdefault((cause.statement, cause.explanations), []).append((test, cause))
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = []
    for (statement, why), members in ranked[:MAX_CAUSES]:
        reasons = dict.fromkeys(reason for _, cause in members for reason in cause.changes)
        place = min(members, key=lambda member: _natural_sort_key(member[0]))[1].place
        lines.append(f"In {tests_in_words([test for test, _ in members])}: {statement}")
        lines += [f"    {line}" for line in (", ".join(reasons), *why, *place)]
    if len(ranked) > MAX_CAUSES:
        lines.append(f"... and {len(ranked) - MAX_CAUSES:,} more statements")
    return lines


def tests_in_words(tests: Sequence[str]) -> str:
    """Return the number of tests, and the first and last test."""
    ordered = sorted(set(tests), key=_natural_sort_key)
    first, last = ordered[0], ordered[-1]
    if len(ordered) == 1:
        return first
    file, _, name = last.rpartition("::")
    if first.rpartition("::")[0] == file:
        last = name
    between = "," if len(ordered) == 2 else " ..."
    return f"{len(ordered):,} tests ({first}{between} {last})"


def _natural_sort_key(test: str) -> list[tuple[int, str]]:
    """Return a sort key that puts test[2] before test[10]."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", test)]


def _usual_reason(
    before: StatementFigures | None, after: StatementFigures, is_shuffled: bool
) -> str:
    """Return the usual reason for the change of a statement's figures; "" if unknown."""
    if before is None:
        return (
            "It runs several times from one line: is it in a loop that one query could replace?"
            if after.repeats > 1
            else ""
        )
    changed_plan = worse_plan_reason(before.plans, after.plans)
    if changed_plan:
        return changed_plan[0].upper() + changed_plan[1:]
    if after.full_scan_steps and not before.full_scan_steps:
        return (
            "It scans a table that it searched before: is an index gone, or does a function"
            " or another collation wrap the column?"
        )
    if after.executions > before.executions:
        return "It runs more often: a loop around it, or a prefetch that is gone?"
    if after.rows > before.rows:
        others = ", or did another test leave rows behind" if is_shuffled else ""
        return f"It returns more rows: is a WHERE or LIMIT gone{others}?"
    return "It takes more work for the same rows: has its plan, an index or a sort changed?"


def site_lines(site: SiteFigures, with_executions: bool = True) -> list[str]:
    """Return the location of the line that runs the statement, and its source code if readable."""
    times = f"{site.executions} x " if with_executions else ""
    frame = site.frame
    if frame is None:
        return [f"{times}from an unknown place"]
    line = f"{times}{frame.function} {file_and_line(relative_path(frame.file), frame.line)}"
    if with_executions and site.caller:
        caller = site.caller
        line += f"  <- {caller.function} {file_and_line(relative_path(caller.file), caller.line)}"
    try:
        source = linecache.getline(frame.file, frame.line).strip()
    except ValueError:  # invalid file name
        source = ""
    return [line, f"    {source}"] if source else [line]


def relative_path(path: str) -> str:
    """Return a file's path, relative to the working directory if the file is inside."""
    return path.removeprefix(os.path.join(os.getcwd(), ""))


def cut_statement(statement: str) -> str:
    """Cut a statement to MAX_STATEMENT_CHARACTERS."""
    return (
        statement
        if len(statement) <= MAX_STATEMENT_CHARACTERS
        else statement[:MAX_STATEMENT_CHARACTERS] + "..."
    )
