"""Divide the time for handing statements to threads among the statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from queryprof.analysis.handoffs import HandoffWaits
from queryprof.findings.groups import StatementGroup, groups_by_function
from queryprof.model import Frame


def divide_hand_over_time(
    groups: Iterable[StatementGroup],
    waits: Mapping[Frame, HandoffWaits],
    is_alone: Callable[[StatementGroup], bool],
) -> None:
    """Divide the hand-over time of each line among the line's statements, in proportion to their
    executions. If a line only fetches rows, divide its time among the statements of its function,
    in proportion to their fetches. If a line hands a function to a thread, divide its time among
    the statements that the function executes. If executions may overlap, set `overlaps` instead of
    dividing the time.

    Args:
        is_alone: returns whether a group's executions are awaited one after the other.
    """
    by_line: dict[Frame, list[StatementGroup]] = defaultdict(list)
    by_caller: dict[Frame, list[StatementGroup]] = defaultdict(list)
    for group in groups if waits else ():
        if group.site.frame:
            by_line[group.site.frame].append(group)
        for frame in () if group.is_in_main_thread else group.path:
            by_caller[frame].append(group)
    of_functions = groups_by_function(chain(*by_line.values()))
    for frame, wait in waits.items():
        some = by_line.get(frame) or of_functions.get((frame.file, frame.function))
        some = some or by_caller.get(frame, [])
        some = [group for group in some if not group.is_in_main_thread] or some
        weights = [group.totals.statement_executions for group in some]
        if frame not in by_line and any(group.fetches for group in some):
            weights = [group.fetches for group in some]
        if not any(weights):
            continue
        if not (wait.are_short or all(map(is_alone, some))):
            for group in some:  # their times overlap
                group.overlaps = True
            continue
        for group, weight in zip(some, weights, strict=True):
            group.handed_ns += wait.ns * weight / sum(weights)
