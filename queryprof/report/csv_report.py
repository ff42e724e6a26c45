"""The report as CSV (RFC 4180): exact figures, an empty cell for an unknown one."""

from __future__ import annotations

import csv
import io

from queryprof.analysis.report import Report
from queryprof.report.columns import table_of
from queryprof.report.inert import csv_cell


def csv_report(report: Report, dimension: str | None = None) -> str:
    """The ranking, or one view, as CSV."""
    names, rows = table_of(report, dimension)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(
        [csv_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return text.getvalue().rstrip("\n")
