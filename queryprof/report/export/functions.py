"""cProfile's statistics with a trace's statements as leaves.

cProfile shows a driver's method as one leaf for all statements. This module splits the time that a
function spent in the leaf among the statements that the function ran, in proportion to their
recorded time. The method keeps the time that the trace does not explain: other drivers, iteration,
calls from a library's own code. The sum of all own times does not change.
"""

from __future__ import annotations

import marshal
import os
import re
from typing import Any

from queryprof.analysis.totals import group_aggregates
from queryprof.model import Aggregate, Profile
from queryprof.report.export.weights import MAX_NAME_CHARACTERS, SQL_FILE
from queryprof.report.inert import escape_control_characters

Function = tuple[str, int, str]
"""(file, first line, name), as in cProfile."""

Figures = tuple[int, int, float, float]
"""(primitive calls, calls, own time, cumulative time); times in seconds."""

Statistics = dict[Function, tuple[int, int, float, float, dict[Function, Figures]]]

MARK = b"\nqueryprof functions\n"
"""The bytes after the marshalled dict. Readers ignore these bytes; queryprof recognizes its own
files by them.
"""

ROUNDING_S = 1e-12
"""Rounding error of a sum of seconds: smaller values count as zero."""

_METHOD = re.compile(r"<method '(\w+)' of '[\w.]*(?:Cursor|Connection)' objects>")
_FUNCTION = re.compile(r"<built-in method [\w.]*\.(connect)>")


def add_statements_to_statistics(statistics: Statistics, profile: Profile) -> bytes:
    """Return a pstats file: the main thread's statistics, with the profile's statements added."""
    found: Statistics = dict(statistics)
    numbers: dict[str, int] = {}
    functions = _FunctionFinder(statistics, profile)
    by_place = group_aggregates(
        profile.aggregates, lambda a: (functions.function_of(a), a.operation)
    )
    for leaf, (*_, callers) in statistics.items():
        operation = _leaf_operation(leaf)
        if operation is None:
            continue
        for caller, figures in callers.items():
            members = by_place.get((caller, operation), [])
            for statement, share in _split_by_statement(members, figures).items():
                number = numbers.setdefault(statement, len(numbers) + 1)
                node = (
                    SQL_FILE,
                    number,
                    escape_control_characters(statement[:MAX_NAME_CHARACTERS]),
                )
                found[node] = _add_share(found.get(node), caller, share, 1)
                found[leaf] = _add_share(found[leaf], caller, share, -1)
    return (
        marshal.dumps(
            {one: kept for one, row in found.items() if (kept := _without_shown_callers(row))}
        )
        + MARK
    )


def _without_shown_callers(row: Any) -> Any:
    """Remove callers whose calls are all shown as statements. Returns None if no caller is left."""
    *sums, callers = row
    kept = {
        one: figures for one, figures in callers.items() if figures[1] or figures[3] > ROUNDING_S
    }
    return (*sums, kept) if kept or not callers else None


def read_and_remove_statistics(path: str) -> Statistics | None:
    """Read the statistics that cProfile wrote, and remove the file. Returns None if the file is
    missing or invalid.
    """
    try:
        with open(path, "rb") as file:
            found = marshal.load(file)  # noqa: S302  # of our own child
        os.unlink(path)
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def _leaf_operation(leaf: Function) -> str | None:
    """Return the driver operation that a leaf represents; None if the leaf is another function."""
    matched = _METHOD.fullmatch(leaf[2]) or _FUNCTION.fullmatch(leaf[2])
    return matched[1] if matched and leaf[0] == "~" else None


def _split_by_statement(members: list[Aggregate], figures: Figures) -> dict[str, Figures]:
    """Split a leaf's figures among the statements in `members`, in proportion to their time.

    The trace may have more calls than cProfile, which sees only one thread. In this case, the
    call counts are reduced in proportion.
    """
    primitive, calls, own_s, all_s = figures
    counted = sum(a.count for a in members)
    spent_ns = sum(a.self_ns for a in members)
    if not counted or spent_ns <= 0:
        return {}
    known = min(1.0, counted / calls) if calls else 0.0
    seen = min(1.0, calls / counted)
    found = {}
    for statement, group in group_aggregates(members, lambda a: a.statement).items():
        runs = round(sum(a.count for a in group) * seen)
        part = known * sum(a.self_ns for a in group) / spent_ns
        found[statement] = (min(runs, primitive), runs, own_s * part, all_s * part)
    return found


def _add_share(before: Any, caller: Function, share: Figures, sign: int) -> Any:
    """Add a share of one caller's calls to a function's statistics (sign 1) or subtract it (-1)."""
    *sums, callers = before or (0, 0, 0.0, 0.0, {})
    known: dict[Function, Figures] = callers
    of_caller = known.get(caller, (0, 0, 0.0, 0.0))
    changed = tuple(a + sign * b for a, b in zip(of_caller, share, strict=True))
    total = tuple(a + sign * b for a, b in zip(sums, share, strict=True))
    return (*total, {**known, caller: changed})


class _FunctionFinder:
    """Find cProfile's function for the innermost frame of a call path.

    The first line identifies the function. If it is unknown, use the last function of that name
    that begins at or before the frame's line.
    """

    def __init__(self, statistics: Statistics, profile: Profile) -> None:
        self._directories = [process.directory for process in profile.processes]
        self._known: dict[tuple[str, str], list[Function]] = {}
        for function in sorted(statistics):
            for directory in self._directories or [""]:
                file = os.path.normpath(os.path.join(directory, function[0]))
                self._known.setdefault((file, function[2]), []).append(function)

    def function_of(self, aggregate: Aggregate) -> Function | None:
        if not aggregate.path:
            return None
        frame = aggregate.path[0]
        name = frame.function.rpartition(".")[2]
        known = self._known.get((os.path.normpath(frame.file), name), [])
        if frame.first_line:
            known = [function for function in known if function[1] == frame.first_line]
        before = [function for function in known if function[1] <= frame.line]
        return before[-1] if before else None
