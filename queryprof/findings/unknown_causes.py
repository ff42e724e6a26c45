"""Sentences about missing plans and counters, without which causes of slowness stay hidden."""

from __future__ import annotations

from collections.abc import Container, Iterator

from queryprof.analysis.report import Report
from queryprof.analysis.units import counted, percent
from queryprof.findings.groups import statement_groups

PLANNED = frozenset({"SELECT", "WITH", "UPDATE", "DELETE"})
NOTABLE_SHARE = 0.10
"""The least share of the database time that is worth a note."""


def unknown_data_notes(report: Report, known: Container[str] = ()) -> Iterator[str]:
    """Yield a sentence if plans or SQLite's counters are unknown for much of the time.

    Args:
        known: statements with a known plan although the recording has none.
    """
    planned = [
        group
        for group in statement_groups(report)
        if group.verb in PLANNED and group.statement not in known
    ]
    for what, unknown, missing in (
        ("the plans", [one for one in planned if not one.plans], "a missing index"),
        (
            "SQLite's counters",
            [one for one in planned if one.plans and not one.totals.counted],
            "a scan or a sort",
        ),
    ):
        share = sum(one.share for one in unknown)
        if share >= NOTABLE_SHARE:
            number = len({one.statement for one in unknown})
            yield (
                f"{what} of {counted(number, 'statement')} ({percent(share)} of the database time)"
                f" are unknown, so queryprof may miss {missing}"
            )
