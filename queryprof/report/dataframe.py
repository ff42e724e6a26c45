"""The ranking as a pandas.DataFrame. pandas is optional."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queryprof.report.columns import view_columns_and_rows

if TYPE_CHECKING:
    from pandas import DataFrame

    from queryprof.analysis.report import Report


def report_dataframe(report: Report) -> DataFrame:
    """Return the ranked statements by call site. Raises ImportError if pandas is not installed."""
    from pandas import DataFrame

    names, rows = view_columns_and_rows(report, None)
    return DataFrame.from_records(rows, columns=list(names), index="rank")
