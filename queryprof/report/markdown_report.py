"""The report as a Markdown table, for an issue or a pull request."""

from __future__ import annotations

from queryprof.analysis.report import Report
from queryprof.analysis.units import average, count, duration, percent
from queryprof.report.columns import Cell, table_of
from queryprof.report.inert import escape_markdown, markdown_code

HIDDEN_COLUMNS = frozenset({"calls", "total_ns", "errors", "p50_ns"})


def markdown_report(report: Report, dimension: str | None = None) -> str:
    """Return the overview and the ranking, or one view, as Markdown."""
    overview = report.overview
    names, rows = table_of(report, dimension)
    shown = [position for position, name in enumerate(names) if name not in HIDDEN_COLUMNS]
    head = (
        f"Ran {duration(overview.run_ns)}, {duration(overview.database_ns)} in the database"
        f" ({percent(overview.database_share)}): {count(overview.executions)} executions of"
        f" {count(overview.statements)} statements."
    )
    lines = [head]
    if rows:
        lines += ["", _row([_heading(names[p]) for p in shown]), _row(["---"] * len(shown))]
    lines += [_row([_cell(names[p], row[p]) for p in shown]) for row in rows]
    lines += [f"\n> {escape_markdown(caution)}" for caution in overview.cautions]
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _heading(name: str) -> str:
    return name.removesuffix("_ns").removesuffix("_per_execution").replace("_", " ")


def _cell(name: str, cell: Cell) -> str:
    if isinstance(cell, str):
        return markdown_code(cell)
    if name.endswith("share") and cell is not None:
        return percent(cell)
    if name.endswith("_ns"):
        return duration(cell)
    return average(cell)
