"""The report as CSV (RFC 4180): exact figures, an empty cell for what is unknown."""

from __future__ import annotations

import csv
import io

from queryprof.model import Profile
from queryprof.report.columns import Cell, table_of

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def csv_report(
    profile: Profile, dimension: str | None = None, sort: str = "total", top: int | None = None
) -> str:
    """The ranking, or one view, as CSV."""
    names, rows = table_of(profile, dimension, sort, top)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([[_safe(cell) for cell in row] for row in rows])
    return text.getvalue().rstrip("\n")


def _safe(cell: Cell) -> Cell:
    """A text that a spreadsheet would take for a formula gets an apostrophe before it (OWASP)."""
    return "'" + cell if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell
