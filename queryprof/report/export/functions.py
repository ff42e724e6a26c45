"""cProfile's statistics with the statements of a trace as leaves.

cProfile shows a driver's method as one leaf, whatever it executed. What a function spent in it is
split among the statements that the trace has from there, by their time; what the trace does not
have (other drivers, iteration, calls from a library's own code) stays with the method. So the sum
of all own times stays what it was.
"""

from __future__ import annotations

import marshal
import os
import re
from typing import Any

from queryprof.analysis.totals import group_by
from queryprof.model import Aggregate, Profile
from queryprof.report.export.weights import LONGEST_NAME, SQL_FILE
from queryprof.report.inert import visible

Function = tuple[str, int, str]
"""(file, first line, name), as cProfile has it."""

Figures = tuple[int, int, float, float]
"""Primitive calls, calls, own time and time with what was called, in seconds."""

Statistics = dict[Function, tuple[int, int, float, float, dict[Function, Figures]]]

MARK = b"\nqueryprof functions\n"
"""After the marshalled dict, where readers do not look: distinguishes a file of ours."""

NOTHING_S = 1e-12
"""What sums of seconds may be off."""

_METHOD = re.compile(r"<method '(\w+)' of '[\w.]*(?:Cursor|Connection)' objects>")
_FUNCTION = re.compile(r"<built-in method [\w.]*\.(connect)>")


def with_statements(statistics: Statistics, profile: Profile) -> bytes:
    """The statistics of a program's main thread, as a file for pstats."""
    found: Statistics = dict(statistics)
    numbers: dict[str, int] = {}
    functions = _Functions(statistics, profile)
    by_place = group_by(profile.aggregates, lambda a: (functions.of(a), a.operation))
    for leaf, (*_, callers) in statistics.items():
        operation = _operation(leaf)
        if operation is None:
            continue
        for caller, figures in callers.items():
            members = by_place.get((caller, operation), [])
            for statement, share in _shares(members, figures).items():
                number = numbers.setdefault(statement, len(numbers) + 1)
                node = (SQL_FILE, number, visible(statement[:LONGEST_NAME]))
                found[node] = _added(found.get(node), caller, share, 1)
                found[leaf] = _added(found[leaf], caller, share, -1)
    return marshal.dumps({one: kept for one, row in found.items() if (kept := _kept(row))}) + MARK


def _kept(row: Any) -> Any:
    """A function's statistics without callers all of whose calls are shown as statements; None:
    it has no others.
    """
    *sums, callers = row
    kept = {
        one: figures for one, figures in callers.items() if figures[1] or figures[3] > NOTHING_S
    }
    return (*sums, kept) if kept or not callers else None


def taken_statistics(path: str) -> Statistics | None:
    """What cProfile wrote to a file, which is removed; None: it has written nothing."""
    try:
        with open(path, "rb") as file:
            found = marshal.load(file)  # noqa: S302  # of our own child
        os.unlink(path)
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def _operation(leaf: Function) -> str | None:
    """The driver's operation that a leaf is."""
    matched = _METHOD.fullmatch(leaf[2]) or _FUNCTION.fullmatch(leaf[2])
    return matched[1] if matched and leaf[0] == "~" else None


def _shares(members: list[Aggregate], figures: Figures) -> dict[str, Figures]:
    """The parts of a leaf's figures that belong to statements, by their time; of more calls than
    cProfile saw (other threads' are among them), those of their number.
    """
    primitive, calls, own_s, all_s = figures
    counted = sum(a.count for a in members)
    spent_ns = sum(a.self_ns for a in members)
    if not counted or spent_ns <= 0:
        return {}
    known = min(1.0, counted / calls) if calls else 0.0
    seen = min(1.0, calls / counted)
    found = {}
    for statement, group in group_by(members, lambda a: a.statement).items():
        runs = round(sum(a.count for a in group) * seen)
        part = known * sum(a.self_ns for a in group) / spent_ns
        found[statement] = (min(runs, primitive), runs, own_s * part, all_s * part)
    return found


def _added(before: Any, caller: Function, share: Figures, sign: int) -> Any:
    """A function's statistics with a share of those from one caller added or taken away."""
    *sums, callers = before or (0, 0, 0.0, 0.0, {})
    known: dict[Function, Figures] = callers
    of_caller = known.get(caller, (0, 0, 0.0, 0.0))
    changed = tuple(a + sign * b for a, b in zip(of_caller, share, strict=True))
    total = tuple(a + sign * b for a, b in zip(sums, share, strict=True))
    return (*total, {**known, caller: changed})


class _Functions:
    """Finds cProfile's function for a call path's innermost frame: by its first line or, where that
    is unknown, the last of the name in the file that begins at or before the frame's line.
    """

    def __init__(self, statistics: Statistics, profile: Profile) -> None:
        self._directories = [process.directory for process in profile.processes]
        self._known: dict[tuple[str, str], list[Function]] = {}
        for function in sorted(statistics):
            for directory in self._directories or [""]:
                file = os.path.normpath(os.path.join(directory, function[0]))
                self._known.setdefault((file, function[2]), []).append(function)

    def of(self, aggregate: Aggregate) -> Function | None:
        if not aggregate.path:
            return None
        frame = aggregate.path[0]
        name = frame.function.rpartition(".")[2]
        known = self._known.get((os.path.normpath(frame.file), name), [])
        if frame.first_line:
            known = [function for function in known if function[1] == frame.first_line]
        before = [function for function in known if function[1] <= frame.line]
        return before[-1] if before else None
