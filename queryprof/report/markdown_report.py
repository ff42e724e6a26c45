"""The report as Markdown: a table for an issue or a pull request."""

from __future__ import annotations

from queryprof.analysis.report import Report
from queryprof.analysis.units import average, count, duration, percent
from queryprof.report.columns import Cell, table_of
from queryprof.report.inert import markdown, markdown_code

LEFT_OUT = frozenset({"calls", "total_ns", "errors", "p50_ns"})


def markdown_report(report: Report, dimension: str | None = None) -> str:
    """The overview and the ranking, or one view, as Markdown."""
    overview = report.overview
    names, rows = table_of(report, dimension)
    kept = [position for position, name in enumerate(names) if name not in LEFT_OUT]
    head = (
        f"Ran {duration(overview.run_ns)}, {duration(overview.database_ns)} in the database"
        f" ({percent(overview.database_share)}): {count(overview.executions)} executions of"
        f" {count(overview.statements)} statements."
    )
    lines = [head]
    if rows:
        lines += ["", _line([_heading(names[p]) for p in kept]), _line(["---"] * len(kept))]
    lines += [_line([_show(names[p], row[p]) for p in kept]) for row in rows]
    lines += [f"\n> {markdown(caution)}" for caution in overview.cautions]
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _heading(name: str) -> str:
    return name.removesuffix("_ns").removesuffix("_per_execution").replace("_", " ")


def _show(name: str, cell: Cell) -> str:
    if isinstance(cell, str):
        return markdown_code(cell)
    if name.endswith("share") and cell is not None:
        return percent(cell)
    if name.endswith("_ns"):
        return duration(cell)
    return average(cell)
