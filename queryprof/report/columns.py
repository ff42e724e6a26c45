"""Rows of the Markdown report and of data frames: one per bottleneck or per row of a view."""

from __future__ import annotations

from collections.abc import Sequence

from queryprof.analysis.report import Report
from queryprof.analysis.totals import Totals
from queryprof.report.places import Places

Cell = str | int | float | None

FIGURES = (
    "executions",
    "calls",
    "errors",
    "rows",
    "total_ns",
    "self_ns",
    "mean_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "max_ns",
    "vm_steps_per_execution",
    "full_scan_steps_per_execution",
)


def view_columns_and_rows(
    report: Report, dimension: str | None
) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """Return the column names and the rows of a view, or of the ranking if `dimension` is None."""
    if dimension is None:
        places = Places(report.profile)
        names = ("rank", "share", "cumulative_share", "function", "place", *FIGURES, "statement")
        return names, [
            (
                b.rank,
                b.share,
                b.cumulative_share,
                places.function(b.site.frame) if b.site.frame else None,
                places.where(b.site.frame) if b.site.frame else None,
                *_figure_cells(b.totals),
                b.statement,
            )
            for b in report.ranking.bottlenecks
        ]
    return (dimension, "share", *FIGURES), [
        (row.name, row.share, *_figure_cells(row.totals)) for row in report.view(dimension).rows
    ]


def _figure_cells(totals: Totals) -> tuple[Cell, ...]:
    return (
        totals.executions,
        totals.calls,
        totals.errors,
        totals.known_rows,
        totals.total_ns,
        totals.self_ns,
        totals.mean_ns,
        totals.p50_ns,
        totals.p95_ns,
        totals.p99_ns,
        totals.max_ns,
        totals.vm_steps,
        totals.full_scan_steps,
    )
