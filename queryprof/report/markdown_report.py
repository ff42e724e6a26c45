"""The report as a Markdown table, for an issue or a pull request."""

from __future__ import annotations

from queryprof.analysis.report import Report
from queryprof.analysis.units import average, count, duration, percent
from queryprof.report.columns import Cell, view_columns_and_rows
from queryprof.report.inert import escape_markdown, inline_markdown_code

HIDDEN_COLUMNS = frozenset({"calls", "total_ns", "errors", "p50_ns"})


def markdown_report(report: Report, dimension: str | None = None) -> str:
    """Return the overview and the ranking, or one view, as Markdown."""
    overview = report.overview
    names, rows = view_columns_and_rows(report, dimension)
    shown = [position for position, name in enumerate(names) if name not in HIDDEN_COLUMNS]
    head = (
        f"Ran {duration(overview.run_ns)}, {duration(overview.database_ns)} in the database"
        f" ({percent(overview.database_share)}): {count(overview.executions)} executions of"
        f" {count(overview.statements)} statements."
    )
    lines = [head]
    if rows:
        lines += [
            "",
            _table_row([_column_heading(names[p]) for p in shown]),
            _table_row(["---"] * len(shown)),
        ]
    lines += [_table_row([_cell_text(names[p], row[p]) for p in shown]) for row in rows]
    lines += [f"\n> {escape_markdown(caution)}" for caution in overview.cautions]
    return "\n".join(lines)


def _table_row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _column_heading(name: str) -> str:
    return name.removesuffix("_ns").removesuffix("_per_execution").replace("_", " ")


def _cell_text(name: str, cell: Cell) -> str:
    if isinstance(cell, str):
        return inline_markdown_code(cell)
    if name.endswith("share") and cell is not None:
        return percent(cell)
    if name.endswith("_ns"):
        return duration(cell)
    return average(cell)
